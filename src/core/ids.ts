/**
 * Ids say their kind and sort by time: a prefix, then 10 characters of milliseconds and 16 random
 * ones in Crockford's base 32, lower case (the ULID layout).
 */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

export const idPrefixes = {
  sandbox: "sb",
  command: "cmd",
  operation: "op",
  apiKey: "key",
  host: "host",
  request: "req",
} as const;
export type IdKind = keyof typeof idPrefixes;

/** @param bytes 10 random bytes (80 bits). @param atMs milliseconds since 1970. */
export function makeId(kind: IdKind, atMs: number, bytes: Uint8Array): string {
  return `${idPrefixes[kind]}_${timePart(atMs)}${randomPart(bytes)}`;
}

/** Whether the text has the shape of an id of this kind; says nothing about whether it exists. */
export function isId(kind: IdKind, text: string): boolean {
  return new RegExp(`^${idPrefixes[kind]}_[${alphabet}]{26}$`).test(text);
}

/** Two digits at once: an id is made for every request. */
const pairs = Array.from(
  { length: 32 * 32 },
  (_, value) => `${alphabet[value >> 5]}${alphabet[value & 31]}`,
);
const pairOf = (value: number): string => pairs[value & 1023] ?? "";

/** 50 bits, in two halves that bit operations can take apart. */
function timePart(atMs: number): string {
  const high = Math.floor(atMs / 2 ** 30);
  const low = atMs % 2 ** 30;
  return pairOf(high >> 10) + pairOf(high) + pairOf(low >> 20) + pairOf(low >> 10) + pairOf(low);
}

function randomPart(bytes: Uint8Array): string {
  return halfOf(bytes, 0) + halfOf(bytes, 5);
}

/** Five bytes are eight digits. */
function halfOf(bytes: Uint8Array, at: number): string {
  const middle = byteAt(bytes, at + 2);
  const high = (byteAt(bytes, at) << 12) | (byteAt(bytes, at + 1) << 4) | (middle >> 4);
  const low = (middle << 16) | (byteAt(bytes, at + 3) << 8) | byteAt(bytes, at + 4);
  return pairOf(high >> 10) + pairOf(high) + pairOf(low >> 10) + pairOf(low);
}

const byteAt = (bytes: Uint8Array, at: number): number => bytes[at] ?? 0;
