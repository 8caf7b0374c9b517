/**
 * The pieces requests and answers are described with. What a schema does not name is refused, with
 * the nearest name: nothing a client sends is dropped in silence.
 */
import { z } from "@hono/zod-openapi";
import { waitSecondsMax } from "./waiting.ts";

/** An object that takes these fields only. */
export function strict<S extends z.core.$ZodLooseShape>(shape: S) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? unknownNames(issue.keys as string[], Object.keys(shape))
        : undefined,
  });
}

export function unknownNames(unknown: readonly string[], known: readonly string[]): string {
  return unknown.map((name) => unknownName(name, known)).join("; ");
}

function unknownName(name: string, known: readonly string[]): string {
  const shown = name.slice(0, 60);
  if (known.length === 0) return `"${shown}" is not known; nothing is taken here`;
  const [nearest] = known.toSorted((a, b) => distance(name, a) - distance(name, b));
  if (nearest !== undefined && distance(name, nearest) <= Math.max(2, name.length / 3))
    return `"${shown}" is not known; did you mean \`${nearest}\`?`;
  return `"${shown}" is not known; there is: ${known.join(", ")}`;
}

/** Levenshtein's distance, of the first 40 characters. */
function distance(a: string, b: string): number {
  const [from, to] = [a.slice(0, 40), b.slice(0, 40)];
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

interface IntegerOptions {
  min: number;
  max: number;
  description: string;
  fallback?: number;
}

/** A whole number in a query, written in decimal digits only. */
export function queryInteger({ min, max, description, fallback = min }: IntegerOptions) {
  return z
    .string()
    .regex(/^[0-9]{1,15}$/, "must be a whole number")
    .optional()
    .transform((text) => (text === undefined ? fallback : Number(text)))
    .pipe(z.number().int().min(min).max(max))
    .openapi({
      param: { schema: { type: "integer", minimum: min, maximum: max, default: fallback } },
      description,
    });
}

/** Several of these words, with commas between them. */
export function queryWords<const W extends readonly [string, ...string[]]>(
  words: W,
  about: string,
) {
  const word = z.enum(words, { error: `must be of: ${words.join(", ")}` });
  return z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(word).min(1).max(words.length))
    .optional()
    .openapi({
      param: { schema: { type: "string" } },
      description: `${about}, one or more with commas between: ${words.join(", ")}`,
    });
}

export const waitQuery = queryInteger({
  min: 0,
  max: waitSecondsMax,
  description: "Seconds to wait for it, at most 25; the answer then tells how it stands.",
});

export const limitQuery = queryInteger({
  min: 1,
  max: 100,
  fallback: 50,
  description: "Entries on one page.",
});

export const cursorQuery = z
  .string()
  .max(1024)
  .optional()
  .openapi({ description: "Where to go on, as an earlier answer said." });

/** A path part. One that names nothing is 404, whatever it looks like. */
export const idParam = z.object({ id: z.string().min(1).max(200) });

export const idempotencyHeader = z.object({
  "idempotency-key": z.string().openapi({
    description: "Names this change: sent again with the same key, it is answered as before.",
    example: "0d1f4b6e-6a0f-4f2e-9d9f-3d1f6a1f2c11",
  }),
});

export const timeSchema = z.iso.datetime().openapi({ example: "2026-12-01T10:00:00.000Z" });

/** RFC 3339 in UTC. */
export function timeOf(ms: number): string;
export function timeOf(ms: number | null): string | null;
export function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

export const pageOf = <T extends z.ZodType>(entry: T) =>
  z.object({ data: z.array(entry), next_cursor: z.string().nullable() });

export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().openapi({ description: "Stable: programs decide by it." }),
    detail: z.string(),
    hint: z.string().optional().openapi({ description: "What to do next." }),
    details: z.record(z.string(), z.unknown()).optional(),
    errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
    request_id: z.string(),
  })
  .openapi("Problem");

/** A JSON body or answer for a route. */
export const json = <S extends z.ZodType>(schema: S, description: string) => ({
  content: { "application/json": { schema } },
  description,
});
