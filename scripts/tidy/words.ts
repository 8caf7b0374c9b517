/** What the code may not say: calls that only the edges may make, empty words, hidden faults. */
import type { Node } from "oxc-parser";
import { bans, emptyWords } from "../arrows.ts";
import { isTest, lineOf, nodesOf, type Source } from "./source.ts";

interface Mention {
  readonly what: string;
  readonly line: number;
}

export function checkWords(source: Source): string[] {
  const nodes = [...nodesOf(source.program)];
  const inProduct = source.path.startsWith("src/") && !isTest(source.path);
  return [
    ...(inProduct ? checkBans(source, nodes) : []),
    ...(inProduct ? nodes.flatMap((node) => checkTextMatch(source, node)) : []),
    ...nodes.flatMap((node) => checkEscape(source, node)),
    ...nodes.flatMap((node) => checkName(source, node)),
    ...checkLeftovers(source),
  ];
}

function checkBans(source: Source, nodes: readonly Node[]): string[] {
  const modules = source.imports.map(({ target, line }) => ({ what: target, line }));
  const mentions = [...nodes.flatMap((node) => mentionsOf(source, node)), ...modules];
  return mentions.flatMap(({ what, line }) => {
    const ban = bans.find(({ says }) =>
      says.some((said) => what === said || what.startsWith(`${said}.`)),
    );
    if (!ban || ban.allowed.test(source.path)) return [];
    return [`${source.path}:${line}: ${what} is banned here, use ${ban.instead}`];
  });
}

/** The outermost dotted names, and plain names where they are called or handed on. */
function mentionsOf(source: Source, node: Node): Mention[] {
  const line = lineOf(source, node);
  const plain = (each: unknown): Mention[] => (isNamed(each) ? [{ what: each.name, line }] : []);
  switch (node.type) {
    case "MemberExpression":
      return isNamed(node.object) && isNamed(node.property) && !node.computed
        ? [{ what: `${node.object.name}.${node.property.name}`, line }]
        : [];
    case "NewExpression":
      return isNamed(node.callee) && node.arguments.length === 0
        ? [{ what: `new ${node.callee.name}()`, line }]
        : [];
    case "CallExpression":
      return [node.callee, ...node.arguments].flatMap(plain);
    case "VariableDeclarator":
      return plain(node.init);
    case "Property":
      return plain(node.value);
    default:
      return [];
  }
}

function isNamed(node: unknown): node is { type: "Identifier"; name: string } {
  return typeof node === "object" && node !== null && "type" in node && node.type === "Identifier";
}

/** A fault is known by its kind or code; its words are for people. */
function checkTextMatch(source: Source, node: Node): string[] {
  if (node.type !== "CallExpression" || node.callee.type !== "MemberExpression") return [];
  const { object, property } = node.callee;
  const asksText =
    isNamed(property) && /^(includes|match|startsWith|endsWith|search)$/.test(property.name);
  const ofMessage =
    object.type === "MemberExpression" &&
    isNamed(object.property) &&
    object.property.name === "message";
  if (!asksText || !ofMessage) return [];
  return [
    `${source.path}:${lineOf(source, node)}: decides by an error's text, use its kind or code`,
  ];
}

function checkEscape(source: Source, node: Node): string[] {
  const at = `${source.path}:${lineOf(source, node)}`;
  if (node.type === "CatchClause" && node.body.body.length === 0)
    return [`${at}: an empty catch hides a fault`];
  if (node.type === "TSAsExpression" && node.typeAnnotation.type === "TSAnyKeyword")
    return [`${at}: "as any" hides a mistake`];
  return [];
}

function checkName(source: Source, node: Node): string[] {
  const declared =
    node.type === "ClassDeclaration" ||
    node.type === "TSInterfaceDeclaration" ||
    node.type === "TSTypeAliasDeclaration";
  if (!declared || !node.id) return [];
  const word = wordsOf(node.id.name).find((each) => emptyWords.test(each));
  if (!word) return [];
  return [`${source.path}:${lineOf(source, node)}: "${word}" in ${node.id.name} says nothing`];
}

function wordsOf(name: string): string[] {
  return name.match(/[A-Z][a-z]+/g) ?? [];
}

function checkLeftovers({ path, lines }: Source): string[] {
  return lines.flatMap((line, index) =>
    /@ts-(ignore|nocheck)|\b(FIX)ME\b|\bXX{2}\b/.test(line)
      ? [`${path}:${index + 1}: left over; mend it before it lands`]
      : [],
  );
}
