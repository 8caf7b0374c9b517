/**
 * Exactly which packages a recipe stands for: names, versions, where they are and their hashes. Made
 * once from the archive's signed indexes, and refreshed only when somebody says so.
 */
import { z } from "zod";
import { Fault } from "../core/fault.ts";
import { parseJson } from "../core/json.ts";
import { readIfThere, writeWhole } from "../system/files.ts";

const packageSchema = z.strictObject({
  /** As the archive calls the file: NAME_VERSION_ARCHITECTURE.deb, the colon escaped. */
  file: z.string().regex(/^[a-z0-9][a-zA-Z0-9.+~%_-]{1,250}\.deb$/),
  uri: z.string().regex(/^https?:\/\/[^\s']{1,2000}$/),
  sizeBytes: z
    .int()
    .min(1)
    .max(4 * 1024 ** 3),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type LockedPackage = z.infer<typeof packageSchema>;

const lockSchema = z.strictObject({
  recipe: z.string(),
  /** When the archive was asked; every file of the base that has no older date gets this one. */
  lockedAtSeconds: z.int().min(0),
  packages: z.array(packageSchema).min(1).max(5_000),
});
export type Lock = z.infer<typeof lockSchema>;

/** Undefined where there is none. @throws Fault `broken` it is not what we wrote. */
export function readLock(path: string): Lock | undefined {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  const { success, data } = lockSchema.safeParse(parseJson(text));
  if (success) return data;
  throw new Fault("broken", `${path} is not a lock`, {
    hint: "remove it; holdfast images build makes a new one",
  });
}

export const writeLock = (path: string, lock: Lock): void =>
  writeWhole(path, `${JSON.stringify(lock, undefined, 1)}\n`);

/** What `apt-get --print-uris` says, line by line: 'URI' FILE SIZE SHA256:HEX. */
export function parseUris(text: string): LockedPackage[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("'"))
    .map((line) => {
      const [, uri, file, size, digest] =
        /^'(\S+)' (\S+) (\d+) SHA256:([0-9a-f]{64})$/.exec(line) ?? [];
      const found = { uri, file, sizeBytes: Number(size), sha256: digest };
      const { success, data } = packageSchema.safeParse(found);
      if (success) return data;
      throw new Fault("broken", `apt-get named a package we do not understand: ${line}`);
    })
    .toSorted((a, b) => (a.file < b.file ? -1 : 1));
}

export const nameOf = ({ file }: LockedPackage): string => file.split("_")[0] ?? file;
