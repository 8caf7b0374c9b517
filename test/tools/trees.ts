/** Throw-away trees of files, as the tools see them: made in a temporary folder, gone afterwards. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface Tree extends Disposable {
  readonly root: string;
}

/** @param files contents by path. */
export function plant(files: Readonly<Record<string, string>>): Tree {
  const root = mkdtempSync(join(tmpdir(), "holdfast-tree-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true }) };
}
