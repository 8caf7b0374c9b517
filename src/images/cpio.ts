/** Writes a cpio archive in the "newc" format of the kernel's initramfs (buffer-format.rst). */

export interface CpioEntry {
  /** Without a leading slash. */
  readonly name: string;
  /** Type and permissions, as of stat(2). */
  readonly mode: number;
  readonly content?: Uint8Array | string;
}

export const folder = (name: string): CpioEntry => ({ name, mode: 0o40_755 });
export const file = (name: string, content: Uint8Array | string, mode = 0o644): CpioEntry => ({
  name,
  mode: 0o100_000 | mode,
  content,
});
export const link = (name: string, target: string): CpioEntry => ({
  name,
  mode: 0o120_777,
  content: target,
});

/** The same entries give the same bytes: no time, no owner, numbers in order. */
export function cpio(entries: readonly CpioEntry[]): Uint8Array {
  const parts = [...entries, { name: "TRAILER!!!", mode: 0 }].flatMap((entry, at) =>
    partsOf(entry, at + 1),
  );
  return Buffer.concat(parts);
}

function partsOf({ name, mode, content = "" }: CpioEntry, inode: number): Uint8Array[] {
  const body = Buffer.from(content);
  const fields = [inode, mode, 0, 0, 1, 0, body.length, 0, 0, 0, 0, name.length + 1, 0];
  const numbers = fields.map((field) => field.toString(16).padStart(8, "0")).join("");
  const head = Buffer.from(`070701${numbers}${name}\0`);
  return [head, padding(head.length), body, padding(body.length)];
}

const padding = (length: number): Uint8Array => new Uint8Array((4 - (length % 4)) % 4);
