/** Checks the shape of the code: arrows between folders, banned words, head comments, sizes. */
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { arrows, bans } from "./arrows.ts";

const root = process.argv[2] ?? ".";
const budgets = { file: 300, testFile: 400, function: 60, parameters: 4, columns: 120 };
/** Homes and work folders of the machine a file was written on. */
const machinePaths = /(^|[\s"'`=(])\/(work|root|home\/(?!agent)[a-z]+)\//;
const problems: string[] = [];

const { stdout } = Bun.spawnSync(["git", "ls-files", "-co", "--exclude-standard"], { cwd: root });
const files = stdout.toString().split("\n").filter(Boolean);
for (const path of files.filter((each) => /^(src|test|scripts)\/.*\.ts$/.test(each)))
  checkFile(path);
for (const path of files.filter((each) => /\.(ts|md|sh|json|toml|service)$/.test(each)))
  if (path !== "package-lock.json") checkText(path);
for (const problem of problems.sort()) console.error(problem);
process.exit(problems.length > 0 ? 1 : 0);

function read(path: string): string[] {
  return readFileSync(join(root, path), "utf8").split("\n");
}

function checkText(path: string): void {
  for (const [index, line] of read(path).entries())
    if (machinePaths.test(line)) problems.push(`${path}:${index + 1}: names a path of one machine`);
}

function checkFile(path: string): void {
  const lines = read(path);
  const max = /^test\/|\.test\.ts$/.test(path) ? budgets.testFile : budgets.file;
  if (lines.length > max) problems.push(`${path}: ${lines.length} lines, over ${max}`);
  if (path.startsWith("src/")) checkSource(path, lines);
  for (const [index, line] of lines.entries()) checkLine(path, line, index + 1);
  checkFunctions(path, lines);
}

function checkSource(path: string, lines: string[]): void {
  if (!path.endsWith(".test.ts") && !lines[0]?.startsWith("/**"))
    problems.push(`${path}: no head comment`);
  if (path.endsWith("/index.ts")) problems.push(`${path}: a barrel`);
  for (const [index, line] of lines.entries())
    if (/^(export )?let |^(export )?const \w+ = new (Map|Set)\(\)/.test(line))
      problems.push(`${path}:${index + 1}: module-level state that can change`);
}

function checkLine(path: string, line: string, number: number): void {
  if (line.length > budgets.columns && !line.includes("://"))
    problems.push(`${path}:${number}: over ${budgets.columns} columns`);
  for (const { word, allowed, instead } of bans)
    if (word.test(line) && !allowed.test(path) && !path.endsWith(".test.ts"))
      problems.push(`${path}:${number}: ${word.source} is banned here, use ${instead}`);
  const target = line.match(/(?:from|import\() ?"(\.[^"]+)"/)?.[1];
  if (target && path.startsWith("src/") && !path.endsWith(".test.ts"))
    checkArrow(path, normalize(join(dirname(path), target)), number);
}

function checkArrow(from: string, to: string, number: number): void {
  const strip = (path: string): string => path.replace(/^src\//, "");
  const [home, there] = [strip(from).split("/")[0] ?? "", strip(to).split("/")[0] ?? ""];
  if (home === there || ["package.json", "settings.example.toml"].includes(to)) return;
  const allowed = arrows[home] ?? [];
  if (!allowed.some((arrow) => strip(to) === arrow || strip(to).startsWith(`${arrow}/`)))
    problems.push(`${from}:${number}: ${home} must not import ${strip(to)}`);
}

/** The formatter closes a function at the indentation it opened at, so lines are enough. */
function checkFunctions(path: string, lines: string[]): void {
  const opening = /^(\s*)(?:export )?(?:async )?(?:static )?(?:function\b\*?|#?\w+\().*\{$/;
  lines.forEach((line, index) => {
    const indent = line.match(opening)?.[1];
    if (indent === undefined || /^\s*(if|for|while|switch|describe|test)\b/.test(line)) return;
    const rest = lines.slice(index);
    const length = rest.findIndex((other) => other === `${indent}}` || other === `${indent}},`) + 1;
    if (length > budgets.function)
      problems.push(`${path}:${index + 1}: function of ${length} lines, over ${budgets.function}`);
    const parameters =
      line
        .match(/\(([^()]*)\)/)?.[1]
        ?.split(",")
        .filter((each) => each.trim()) ?? [];
    if (/function/.test(line) && parameters.length > budgets.parameters)
      problems.push(`${path}:${index + 1}: ${parameters.length} parameters`);
  });
}
