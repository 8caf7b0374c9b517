/** Rows of the benchmark's table, and the arithmetic they share. */

export interface Row {
  readonly group: string;
  readonly what: string;
  readonly value: number;
  /** "x" for ratios. */
  readonly unit: string;
  /** Absent: told for information. */
  readonly bar?: { readonly atMost: number } | { readonly atLeast: number };
}

/** Measures one group; prints nothing but progress. */
export type Group = (say: (progress: string) => void) => Promise<Row[]>;

export function isOk({ value, bar }: Row): boolean {
  if (!bar) return true;
  return "atMost" in bar ? value <= bar.atMost : value >= bar.atLeast;
}

export function barText({ bar, unit }: Row): string {
  if (!bar) return "";
  return "atMost" in bar ? `≤ ${bar.atMost} ${unit}` : `≥ ${bar.atLeast} ${unit}`;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

/** Runs both by turns, so that the machine's moods fall on both. */
export async function inPairs(
  count: number,
  ours: () => Promise<number>,
  theirs: () => Promise<number>,
): Promise<{ ours: number[]; theirs: number[] }> {
  const result: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let pair = 0; pair < count; pair++) {
    const first = pair % 2 === 0 ? "ours" : "theirs";
    for (const name of first === "ours"
      ? (["ours", "theirs"] as const)
      : (["theirs", "ours"] as const))
      result[name].push(await (name === "ours" ? ours() : theirs()));
  }
  return result;
}

/** Milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
