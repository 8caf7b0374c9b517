/** What one command of the command line is, and how its results and refusals are written. */
import { commonFlags, type Flags, type Parsed, parseArguments, UsageError } from "./arguments.ts";
import { type Client, type ClientOptions, findTarget, makeClient, Refusal } from "./client.ts";

export interface CliCommand {
  readonly usage: string;
  /** Where its output could not be written; 1 unless set. It goes on without where it says so. */
  readonly whenMute?: number | "go on";
  /** Returns the exit code. */
  run(argv: readonly string[]): Promise<number>;
}

export interface Call<F extends Flags> extends Parsed<F & typeof commonFlags> {
  readonly client: Client;
}

export interface Shape<F extends Flags> {
  usage: string;
  flags: F;
  /** After this many words, the rest belongs to a program. */
  wordsEnd?: number;
  client?: ClientOptions;
  whenMute?: number;
  run: (call: Call<F>) => Promise<number>;
}

/** A command that asks the API. */
export function clientCommand<const F extends Flags>(shape: Shape<F>): CliCommand {
  const { usage, wordsEnd, flags: own, whenMute } = shape;
  return {
    usage,
    ...(whenMute !== undefined && { whenMute }),
    run: async (argv) => {
      const known: F & typeof commonFlags = { ...commonFlags, ...own };
      const parsed = parseArguments(argv, known, wordsEnd);
      const flags = parsed.flags as Parsed<typeof commonFlags>["flags"];
      if (flags.help) return print(usage);
      try {
        return await shape.run({ ...parsed, client: makeClient(findTarget(flags), shape.client) });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return refuse(error, flags.json);
      }
    },
  };
}

/** With --json the problem is a line on stdout, so that a program reads one stream only. */
function refuse({ problem, exitCode }: Refusal, json: boolean): number {
  if (json) printJson(problem);
  else {
    const errors = problem.errors
      ?.slice(1)
      .map(({ pointer, detail }) => `\n  ${pointer}: ${detail}`);
    const hint = problem.hint === undefined ? "" : `\n  what to do: ${problem.hint}`;
    process.stderr.write(`error: ${problem.detail}${errors?.join("") ?? ""}${hint}\n`);
  }
  return exitCode;
}

export function print(text: string): number {
  process.stdout.write(text.endsWith("\n") || text === "" ? text : `${text}\n`);
  return 0;
}

/** One line, so that several make NDJSON. */
export const printJson = (value: unknown): number => print(JSON.stringify(value));

export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Colours only where a person reads them. */
export function coloured(text: string, code: number): string {
  const wanted = process.stdout.isTTY === true && !process.env["NO_COLOR"];
  return wanted ? `\x1b[${code}m${text}\x1b[0m` : text;
}

/** Columns side by side on a terminal, cut to its width; tabs between them for programs. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  if (!process.stdout.isTTY) return rows.map((row) => `${row.join("\t")}\n`).join("");
  const widths = header.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)),
  );
  const width = process.stdout.columns || 80;
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at === cells.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .slice(0, width);
  return [coloured(line(header), 1), ...rows.map(line), ""].join("\n");
}

export function sinceText(iso: string | null): string {
  if (iso === null) return "-";
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(iso)) / 1000));
  if (seconds < 90) return `${seconds}s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)}m`;
  return seconds < 36 * 3600
    ? `${Math.round(seconds / 3600)}h`
    : `${Math.round(seconds / 86_400)}d`;
}

/** @throws UsageError unless there are exactly so many words. */
export function wordsOf(words: readonly string[], ...names: string[]): string[] {
  if (words.length === names.length) return [...words];
  throw new UsageError(
    words.length < names.length
      ? `${names[words.length]} is missing`
      : `"${words[names.length]}" is one word too many`,
  );
}

/** NAME=VALUE pairs. @throws UsageError. */
export function pairsOf(texts: readonly string[], what: string): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at < 1) throw new UsageError(`${what} needs NAME=VALUE, not "${text}"`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}
