/** Reading a command line. What is not known is refused; nothing is guessed. */

/** `list` may be given several times; `switch` takes no value. */
export type FlagKind = "switch" | "text" | "list";
export interface Flag {
  readonly kind: FlagKind;
  readonly short?: string;
}
export type Flags = Readonly<Record<string, Flag>>;

type ValueOf<F extends Flag> = F["kind"] extends "switch"
  ? boolean
  : F["kind"] extends "text"
    ? string | undefined
    : string[];

export interface Parsed<F extends Flags> {
  readonly flags: { readonly [Name in keyof F]: ValueOf<F[Name]> };
  readonly words: readonly string[];
}

/** Wrong use of the command line: exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** Flags that every command has. */
export const commonFlags = {
  json: { kind: "switch" },
  quiet: { kind: "switch", short: "q" },
  help: { kind: "switch", short: "h" },
  url: { kind: "text" },
  data: { kind: "text" },
} as const satisfies Flags;

/**
 * @param wordsEnd after this many words all that follows is a word, so that a program's own flags
 *   stay its own; `--` has the same effect. @throws UsageError.
 */
export function parseArguments<F extends Flags>(
  argv: readonly string[],
  known: F,
  wordsEnd = Number.POSITIVE_INFINITY,
): Parsed<F> {
  const values = new Map<string, unknown>();
  for (const [name, { kind }] of Object.entries(known))
    values.set(name, kind === "switch" ? false : kind === "list" ? [] : undefined);
  const words: string[] = [];
  const rest = [...argv];
  while (rest.length > 0) {
    const part = rest.shift() ?? "";
    if (part === "--" || words.length >= wordsEnd) {
      words.push(...(part === "--" ? rest : [part, ...rest]));
      break;
    }
    if (part.length > 1 && part.startsWith("-")) takeFlag({ part, rest, known, values });
    else words.push(part);
  }
  return { flags: Object.fromEntries(values) as Parsed<F>["flags"], words };
}

interface Taking {
  part: string;
  rest: string[];
  known: Flags;
  values: Map<string, unknown>;
}

function takeFlag({ part, rest, known, values }: Taking): void {
  const [shown = "", attached] = part.split(/=(.*)/s, 2);
  const name = Object.keys(known).find((each) =>
    shown.startsWith("--") ? `--${each}` === shown : `-${known[each]?.short}` === shown,
  );
  const flag = name === undefined ? undefined : known[name];
  if (name === undefined || !flag) throw new UsageError(`there is no flag ${shown}`);
  if (flag.kind === "switch") {
    if (attached !== undefined) throw new UsageError(`${shown} takes no value`);
    values.set(name, true);
    return;
  }
  const value = attached ?? rest.shift();
  if (value === undefined) throw new UsageError(`${shown} needs a value`);
  if (flag.kind === "list") (values.get(name) as string[]).push(value);
  else values.set(name, value);
}
