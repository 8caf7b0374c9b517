/**
 * Every committed text: nothing of one machine in it, no package registry's host, and no citation
 * of a file that is not there.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Homes and work folders of the machine a file was written on. The guest's user is `agent`. */
const machinePath = /(?<![\w.~*$}/-])\/(work|root|home\/(?!agent\b)[a-z]+|Users\/\w+)\//;
const registryHost =
  /\b(registry|index|npm|proxy|static|files)\.(npmjs|yarnpkg|crates|golang|pypi|pythonhosted|pkg)\b[\w.]*/;
const folders = /^(\.\/)?(src|test|scripts|docs|web|systemd|\.ci)\//;

export function checkText(path: string, lines: readonly string[]): string[] {
  return lines.flatMap((line, index) => {
    const at = `${path}:${index + 1}`;
    if (machinePath.test(line)) return [`${at}: names a path of one machine`];
    if (registryHost.test(line)) return [`${at}: names a package registry's host`];
    return [];
  });
}

/**
 * npm builds every package that has a binding.gyp, which takes compilers that a fresh machine lacks.
 * This one brings its builds along; only the lock can say so, and npm drops the word when it writes.
 */
export function checkLock(path: string, text: string): string[] {
  const says = /"node_modules\/better-sqlite3": \{[^{}]*"gypfile": false/.test(text);
  const hosts = text.match(/"resolved": "[^"]*:\/\//g) ?? [];
  return [
    ...(says ? [] : [`${path}: better-sqlite3 needs "gypfile": false, or npm builds it`]),
    ...(hosts.length > 0 ? [`${path}: ${hosts.length} packages name the host they came from`] : []),
  ];
}

/** Links of a document, its backticked paths, and the test's name in quotes behind a test's path. */
export function checkDocument(root: string, path: string, text: string): string[] {
  return text.split("\n").flatMap((line, index) => {
    const at = `${path}:${index + 1}`;
    const gone = citedIn(path, line).filter((each) => !existsSync(join(root, each)));
    return [
      ...gone.map((each) => `${at}: cites ${each}, which is not there`),
      ...missingTests(root, line).map((each) => `${at}: ${each}`),
    ];
  });
}

function citedIn(path: string, line: string): string[] {
  const cited = [...line.matchAll(/`([^`\s]+)`/g)].map((match) => match[1] ?? "");
  const linked = [...line.matchAll(/\]\((?!\w+:|#)([^)\s#]+)[^)]*\)/g)].map((match) =>
    normalize(join(dirname(path), match[1] ?? "")),
  );
  return [...cited.filter(isPath), ...linked].map((each) => each.replace(/:\d+$/, ""));
}

/** Patterns and placeholders are no paths. */
function isPath(text: string): boolean {
  return folders.test(text) && !/[*<>{}…$]|NNNN/.test(text);
}

function missingTests(root: string, line: string): string[] {
  return [...line.matchAll(/`([^`\s]+\.(?:test|contract)\.ts)` "([^"]+)"/g)].flatMap((match) => {
    const [file, name] = [match[1] ?? "", match[2] ?? ""];
    if (!existsSync(join(root, file))) return [];
    const isThere = readFileSync(join(root, file), "utf8").includes(name);
    return isThere ? [] : [`${file} has no test "${name}"`];
  });
}
