/**
 * Checks the shape of the tree: who imports whom, what may be said where, sizes, and what committed
 * texts name. It never changes a file. Another tree's root can be given.
 */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { checkImports } from "./tidy/imports.ts";
import { checkColumns, checkSizes } from "./tidy/sizes.ts";
import { readSource, type Source } from "./tidy/source.ts";
import { checkState } from "./tidy/state.ts";
import { checkDocument, checkLock, checkText } from "./tidy/texts.ts";
import { checkWords } from "./tidy/words.ts";

const root = process.argv[2] ?? ".";
const files = listFiles();
const sources = files.filter((path) => /\.tsx?$/.test(path)).map((path) => readSource(root, path));
const problems = [
  ...checkImports(sources),
  ...sources.flatMap(checkSource),
  ...files.flatMap(checkFile),
].sort();
for (const problem of problems) console.error(problem);
process.exit(problems.length > 0 ? 1 : 0);

/** What git knows or would add, without what is deleted, linked, or no text of ours. */
function listFiles(): string[] {
  const git = Bun.spawnSync(["git", "ls-files", "-zco", "--exclude-standard"], { cwd: root });
  if (!git.success) throw new Error(`git ls-files: ${git.stderr}`);
  return git.stdout
    .toString()
    .split("\0")
    .filter((path) => path !== "" && !/\.(png|jpg|svg|ico|woff2|gz|zst)$/.test(path))
    .filter((path) => statSync(join(root, path), { throwIfNoEntry: false })?.isFile())
    .sort();
}

function checkSource(source: Source): string[] {
  if (source.errors.length > 0) return source.errors.map((error) => `${source.path}: ${error}`);
  return [...checkSizes(source), ...checkState(source), ...checkWords(source)];
}

function checkFile(path: string): string[] {
  const text = readFileSync(join(root, path), "utf8");
  const lines = text.split("\n");
  return [
    ...checkText(path, lines),
    ...(/\.(c|h|sh|css|html)$/.test(path) ? checkColumns(path, lines) : []),
    ...(path === "package-lock.json" ? checkLock(path, text) : []),
    ...(path.endsWith(".md") ? checkDocument(root, path, text) : []),
  ];
}
