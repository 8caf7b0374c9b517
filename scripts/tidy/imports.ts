/** Who imports whom: the table of arrows, no cycles, no barrels, nothing loaded for nothing. */
import { dirname } from "node:path";
import { arrows, unreached } from "../arrows.ts";
import { type Import, isTest, type Source } from "./source.ts";

export function checkImports(sources: readonly Source[]): string[] {
  const product = sources.filter(({ path }) => path.startsWith("src/") && !isTest(path));
  return [
    ...product.flatMap(checkArrows),
    ...product.flatMap(checkBarrel),
    ...findCycles(product),
    ...unreached.flatMap((rule) => checkReach(product, rule)),
  ];
}

function checkArrows({ path, imports }: Source): string[] {
  const from = path.slice("src/".length);
  const home = homeOf(from);
  if (home === undefined) return [`${path}: no row in scripts/arrows.ts says what it may import`];
  return imports.flatMap(({ target, line, kind }) => {
    const at = `${path}:${line}`;
    if (!target.startsWith("src/")) {
      const isOurs = /^(\.|test\/|scripts\/|web\/|docs\/)/.test(target);
      return isOurs ? [`${at}: src must not import ${target}`] : [];
    }
    const to = target.slice("src/".length);
    if (isNear(home, to) || (arrows[home] ?? []).some((arrow) => permits(arrow, to, kind)))
      return [];
    return [`${at}: ${home} must not import ${kind === "type" ? "the type of " : ""}${to}`];
  });
}

/** In the same folder. A row of one file binds that file, not its neighbours. */
function isNear(home: string, to: string): boolean {
  const there = homeOf(to);
  return there === home || (there?.endsWith(".ts") === true && dirname(there) === home);
}

function homeOf(path: string): string | undefined {
  const homes = Object.keys(arrows).filter((home) => isIn(path, home));
  return homes.sort((one, other) => other.length - one.length)[0];
}

function isIn(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

function permits(arrow: string, to: string, kind: Import["kind"]): boolean {
  const typed = arrow.startsWith("type ");
  return isIn(to, typed ? arrow.slice("type ".length) : arrow) && (!typed || kind === "type");
}

function checkBarrel({ path, program, imports }: Source): string[] {
  if (/\/index\.tsx?$/.test(path)) return [`${path}: a barrel; name the file after what it holds`];
  const passedOn = imports.filter(({ kind }) => kind === "reexport");
  const first = passedOn[0];
  const isAll = program.body.some(({ type }) => type === "ExportAllDeclaration");
  if (first && (isAll || passedOn.length === program.body.length))
    return [`${path}:${first.line}: a barrel; import ${first.target} where it is needed`];
  return [];
}

/** Cycles of imports that run code; types alone may refer to each other. */
function findCycles(sources: readonly Source[]): string[] {
  const graph = new Map(sources.map((source) => [source.path, loadedBy(source)]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) cycles.push(`${path}: a cycle: ${[...trail.slice(at), path].join(" → ")}`);
    if (at >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return cycles;
}

function loadedBy({ imports }: Source): string[] {
  return imports
    .filter(({ kind }) => kind === "value" || kind === "reexport")
    .map(({ target }) => target);
}

function checkReach(sources: readonly Source[], rule: (typeof unreached)[number]): string[] {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const trails = new Map<string, readonly string[]>([[rule.from, [rule.from]]]);
  for (const [path, trail] of trails) {
    const source = byPath.get(path);
    for (const next of source ? loadedBy(source) : []) {
      if (rule.never.some((place) => isIn(next, place)))
        return [`${path}: loads ${next} (${trail.join(" → ")}); ${rule.why}`];
      if (!trails.has(next)) trails.set(next, [...trail, next]);
    }
  }
  return [];
}
