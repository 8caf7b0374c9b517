/** Budgets: how long a file, a function, a line and a list of parameters may be. */
import type { Node } from "oxc-parser";
import { isTest, lineOf, nodesOf, type Source } from "./source.ts";

export const budgets = { file: 300, testFile: 400, function: 60, parameters: 4, columns: 120 };
/** Lines of a head comment, its opening and closing included. */
const headLinesMax = 12;

export function checkSizes(source: Source): string[] {
  const { path, lines } = source;
  const max = isTest(path) ? budgets.testFile : budgets.file;
  return [
    ...(lines.length > max ? [`${path}: ${lines.length} lines, over ${max}`] : []),
    ...checkColumns(path, lines),
    ...checkHead(path, lines),
    ...[...nodesOf(source.program)].flatMap((node) => checkFunction(source, node)),
  ];
}

/** Also for what is not TypeScript. A line that holds an address may be long. */
export function checkColumns(path: string, lines: readonly string[]): string[] {
  return lines.flatMap((line, index) =>
    line.length > budgets.columns && !line.includes("://")
      ? [`${path}:${index + 1}: ${line.length} columns, over ${budgets.columns}`]
      : [],
  );
}

function checkHead(path: string, lines: readonly string[]): string[] {
  const first = lines[0]?.startsWith("#!") ? 1 : 0;
  if (path.endsWith(".test.ts") || path.endsWith(".d.ts")) return [];
  if (!lines[first]?.startsWith("/**")) return [`${path}: no head comment says what it is`];
  const end = lines.findIndex((line) => line.includes("*/"));
  if (end - first < headLinesMax) return [];
  return [`${path}: a head comment of ${end - first + 1} lines, over ${headLinesMax}`];
}

function checkFunction(source: Source, node: Node): string[] {
  if (
    node.type !== "FunctionDeclaration" &&
    node.type !== "FunctionExpression" &&
    node.type !== "ArrowFunctionExpression"
  )
    return [];
  const at = `${source.path}:${lineOf(source, node)}`;
  const length = source.text.slice(node.start, node.end).split("\n").length;
  // A case is bounded by its file's budget, a mere expression by those of the functions in it.
  const isCase =
    isTest(source.path) &&
    (node.type === "ArrowFunctionExpression" || source.path.endsWith(".contract.ts"));
  const isExpression = node.type === "ArrowFunctionExpression" && node.expression;
  const problems: string[] = [];
  if (length > budgets.function && !isCase && !isExpression)
    problems.push(`${at}: a function of ${length} lines, over ${budgets.function}`);
  if (node.params.length > budgets.parameters && !isCase)
    problems.push(`${at}: ${node.params.length} parameters, over ${budgets.parameters}`);
  return problems;
}
