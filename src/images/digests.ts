/** Hashes of what images are made of and consist of. */

/** Hex. Reads the file in pieces; also one that is built into the binary, which only Bun can open. */
export async function sha256Of(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const piece of Bun.file(path).stream()) hasher.update(piece);
  return hasher.digest("hex");
}

/** Of all of these, one after the other, so that none can pass for the end of another. */
export function sha256(...texts: (string | Uint8Array)[]): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const text of texts) {
    hasher.update(text);
    hasher.update("\0");
  }
  return hasher.digest("hex");
}
