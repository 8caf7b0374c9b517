/** A source file, parsed once, as every rule of tidy looks at it. */
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { type Node, type Program, parseSync } from "oxc-parser";

export interface Import {
  /** A path from the root of the tree, or the name of a package or built-in module. */
  readonly target: string;
  readonly line: number;
  readonly kind: "value" | "type" | "lazy" | "reexport";
}

export interface Source {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly program: Program;
  readonly imports: readonly Import[];
  /** What the parser could not make sense of; the rest of the file is not looked at then. */
  readonly errors: readonly string[];
}

export function readSource(root: string, path: string): Source {
  const text = readFileSync(join(root, path), "utf8");
  const { program, errors } = parseSync(path, text);
  const source = { path, text, lines: text.replace(/\n$/, "").split("\n"), program };
  return { ...source, imports: importsOf(source), errors: errors.map(({ message }) => message) };
}

export function isTest(path: string): boolean {
  return path.startsWith("test/") || /\.test\.tsx?$/.test(path);
}

export function lineOf({ text }: Pick<Source, "text">, { start }: { start: number }): number {
  return text.slice(0, start).split("\n").length;
}

/** Every node below this one, itself included, parents first. */
export function* nodesOf(root: unknown): Generator<Node> {
  if (typeof root !== "object" || root === null) return;
  if (Array.isArray(root)) {
    for (const each of root) yield* nodesOf(each);
    return;
  }
  if (isNode(root)) yield root;
  for (const value of Object.values(root)) if (typeof value === "object") yield* nodesOf(value);
}

function isNode(value: object): value is Node {
  return "type" in value && typeof value.type === "string";
}

function importsOf(source: Pick<Source, "path" | "text" | "program">): Import[] {
  const found: Import[] = [];
  const add = (literal: unknown, kind: Import["kind"], at: { start: number }): void => {
    if (typeof literal !== "string") return;
    const target = literal.startsWith(".")
      ? normalize(join(dirname(source.path), literal))
      : literal;
    found.push({ target, line: lineOf(source, at), kind });
  };
  for (const node of nodesOf(source.program)) {
    if (node.type === "ImportDeclaration")
      add(node.source.value, onlyTypes(node) ? "type" : "value", node);
    if (node.type === "ExportAllDeclaration" || node.type === "ExportNamedDeclaration")
      add(node.source?.value, "reexport", node);
    if (node.type === "ImportExpression" && node.source.type === "Literal")
      add(node.source.value, "lazy", node);
    if (node.type === "TSImportType") add(node.source.value, "type", node);
  }
  return found;
}

function onlyTypes(node: Extract<Node, { type: "ImportDeclaration" }>): boolean {
  if (node.importKind === "type") return true;
  const { specifiers } = node;
  return (
    specifiers.length > 0 &&
    specifiers.every((each) => each.type === "ImportSpecifier" && each.importKind === "type")
  );
}
