/** What the simulated programs do: decided by their arguments alone, so that it can be checked. */

export interface Write {
  readonly afterMs: number;
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
}

export interface Plan {
  /** In order of time. */
  readonly writes: readonly Write[];
  /** When it ends by itself; Infinity: never. */
  readonly lastsMs: number;
  readonly exitCode: number;
  /** Copies its stdin to its stdout and ends with it. */
  readonly copies: boolean;
  readonly ignoresTerm: boolean;
}

const nothing: Plan = {
  writes: [],
  lastsMs: 0,
  exitCode: 0,
  copies: false,
  ignoresTerm: false,
};
const stepsMax = 5;
const yesLines = 100_000;

/** undefined: there is no such program. */
export function planOf(commandId: string, argv: readonly string[]): Plan | undefined {
  const [name = "", ...words] = argv;
  const [first = 0, second = 0, third = 0] = words.map(Number);
  switch (name.replace(/^.*\//, "")) {
    case "true":
      return nothing;
    case "false":
      return { ...nothing, exitCode: 1 };
    case "echo":
      return { ...nothing, writes: [said(`${words.join(" ")}\n`)] };
    case "seq":
      return { ...nothing, writes: [said(numbers(first))] };
    case "sleep":
      return { ...nothing, lastsMs: first * 1_000 };
    case "stubborn":
      return { ...nothing, lastsMs: first * 1_000, ignoresTerm: true };
    case "cat":
      return { ...nothing, lastsMs: Number.POSITIVE_INFINITY, copies: true };
    case "yes":
      return { ...nothing, lastsMs: Number.POSITIVE_INFINITY, writes: endless("y\n") };
    case "program":
      return scripted(commandId, { lastsMs: first, bytes: second, exitCode: third }, ["stdout"]);
    case "both":
      return scripted(commandId, { lastsMs: first, bytes: second, exitCode: third }, [
        "stderr",
        "stdout",
      ]);
    default:
      return undefined;
  }
}

interface Script {
  lastsMs: number;
  bytes: number;
  exitCode: number;
}

/** Lasts so long, writes so many bytes spread over that time, ends with that code. */
function scripted(
  commandId: string,
  { lastsMs, bytes, exitCode }: Script,
  streams: readonly Write["stream"][],
): Plan {
  const all = outputOf(commandId, bytes);
  const steps = lastsMs === 0 ? 1 : stepsMax;
  const writes = Array.from({ length: steps }, (_, step) => ({
    afterMs: Math.floor((lastsMs * (step + 1)) / steps),
    stream: streams[step % streams.length] ?? "stdout",
    data: all.subarray(
      Math.floor((bytes * step) / steps),
      Math.floor((bytes * (step + 1)) / steps),
    ),
  }));
  return { ...nothing, lastsMs, exitCode, writes: writes.filter(({ data }) => data.length > 0) };
}

/** The bytes a command writes: they tell which command and where, so that mix-ups show. */
export function outputOf(commandId: string, bytes: number): Uint8Array {
  const line = `${commandId} `;
  return new TextEncoder().encode(line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes));
}

const said = (text: string): Write => ({
  afterMs: 0,
  stream: "stdout",
  data: new TextEncoder().encode(text),
});

const numbers = (last: number): string =>
  Array.from({ length: Math.min(last, 100_000) }, (_, index) => `${index + 1}\n`).join("");

const endless = (line: string): Write[] =>
  Array.from({ length: yesLines }, (_, index) => ({ ...said(line), afterMs: index * 50 }));
