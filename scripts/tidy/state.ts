/**
 * No state that can change at the level of a module: several appliances run in one process, and
 * must share nothing.
 */
import type { Node } from "oxc-parser";
import { isTest, lineOf, type Source } from "./source.ts";

type Declarator = Extract<Node, { type: "VariableDeclarator" }>;

export function checkState(source: Source): string[] {
  if (!source.path.startsWith("src/") || isTest(source.path)) return [];
  return source.program.body.flatMap((statement) => {
    const node =
      statement.type === "ExportNamedDeclaration"
        ? (statement.declaration ?? statement)
        : statement;
    if (node.type === "VariableDeclaration" && !node.declare)
      return node.declarations
        .filter((each) => node.kind !== "const" || canChange(each))
        .map((each) => complain(source, each));
    if (node.type === "ClassDeclaration")
      return node.body.body
        .filter((each) => each.type === "PropertyDefinition" && each.static && !each.readonly)
        .map((each) => complain(source, each));
    return [];
  });
}

function complain(source: Source, node: Node): string {
  const line = lineOf(source, node);
  return `${source.path}:${line}: state of the module that can change; readonly, or an object's own`;
}

/** Collections that nothing declares read-only. */
function canChange({ id, init }: Declarator): boolean {
  if (!init || isReadonly(id)) return false;
  if (init.type === "ArrayExpression") return true;
  if (init.type === "ObjectExpression") return init.properties.length === 0;
  if (init.type !== "NewExpression" || init.callee.type !== "Identifier") return false;
  return /^(Map|Set|WeakMap|WeakSet|Array)$/.test(init.callee.name);
}

function isReadonly(id: Node): boolean {
  const type = "typeAnnotation" in id ? id.typeAnnotation : undefined;
  if (type?.type !== "TSTypeAnnotation") return false;
  const { typeAnnotation } = type;
  if (typeAnnotation.type === "TSTypeOperator") return typeAnnotation.operator === "readonly";
  if (typeAnnotation.type !== "TSTypeReference") return false;
  const { typeName } = typeAnnotation;
  return typeName.type === "Identifier" && typeName.name.startsWith("Readonly");
}
