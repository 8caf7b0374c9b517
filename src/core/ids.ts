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

function timePart(atMs: number): string {
  let rest = atMs;
  let text = "";
  for (let digit = 0; digit < 10; digit++) {
    text = alphabet[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function randomPart(bytes: Uint8Array): string {
  return halfOf(bytes.subarray(0, 5)) + halfOf(bytes.subarray(5, 10));
}

/** Five bytes are eight digits, and still exact in a number. */
function halfOf(bytes: Uint8Array): string {
  let value = 0;
  for (const byte of bytes) value = value * 256 + byte;
  let text = "";
  for (let digit = 0; digit < 8; digit++) {
    text = alphabet[value % 32] + text;
    value = Math.floor(value / 32);
  }
  return text;
}
