/**
 * Reads junit reports: nested suites of cases, of which those without a failure, an error or a skip
 * passed. It never takes a report that was cut short for a whole one.
 */
export interface Case {
  readonly name: string;
  /** As the report has it: relative to where the tests ran. */
  readonly file: string;
  readonly result: "passed" | "failed" | "skipped";
  /** Why it was skipped, where the report says. */
  readonly why: string;
}

export interface Report {
  readonly cases: readonly Case[];
  readonly isWhole: boolean;
}

interface Tag {
  readonly name: string;
  readonly kind: "open" | "close" | "empty";
  readonly attributes: Readonly<Record<string, string>>;
}

export function readReport(xml: string): Report {
  const cases: Case[] = [];
  const suites: string[] = [];
  let inside: { name: string; file: string; result: Case["result"]; why: string } | undefined;
  let isWhole = false;
  for (const { name, kind, attributes } of tagsOf(xml)) {
    if (name === "testsuite" && kind === "open") suites.push(attributes["file"] ?? "");
    if (name === "testsuite" && kind === "close") suites.pop();
    if (name === "testcase" && kind !== "close") {
      const file = attributes["file"] || suites.at(-1) || "";
      inside = { name: attributes["name"] ?? "", file, result: "passed", why: "" };
    }
    if (inside && kind !== "close" && /^(failure|error)$/.test(name)) inside.result = "failed";
    if (inside && kind !== "close" && name === "skipped" && inside.result === "passed")
      inside = { ...inside, result: "skipped", why: attributes["message"] ?? "" };
    if (inside && name === "testcase" && kind !== "open") {
      cases.push(inside);
      inside = undefined;
    }
    if (name === "testsuites") isWhole = kind !== "open";
  }
  return { cases, isWhole };
}

/** Tags in order. Text between them, comments and character data are passed over. */
function* tagsOf(xml: string): Generator<Tag> {
  const bare = xml.replace(/<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>/g, "");
  const tag = /<(\/?)([A-Za-z][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>/g;
  for (const [, slash, name = "", attributes = "", end] of bare.matchAll(tag))
    yield {
      name,
      kind: slash ? "close" : end ? "empty" : "open",
      attributes: attributesOf(attributes),
    };
}

function attributesOf(text: string): Record<string, string> {
  const pairs = text.matchAll(/([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g);
  return Object.fromEntries(
    [...pairs].map(([, name = "", double, single]) => [name, plain(double ?? single ?? "")]),
  );
}

const entities: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  amp: "&",
};

function plain(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (all, decimal, hex, name) => {
    if (name) return entities[name] ?? all;
    return String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16));
  });
}
