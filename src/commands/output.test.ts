import { expect, test } from "bun:test";
import fc from "fast-check";
import { type OutputDb, openOutput } from "../db/open.ts";
import { openBytes } from "../db/sqlite.ts";
import {
  appendOutput,
  extentOf,
  gapOf,
  type OutputPart,
  readOutput,
  removeOutput,
} from "./output.ts";

const commandId = "cmd_1";

async function opened(): Promise<OutputDb> {
  const sqlite = await openBytes(undefined);
  return openOutput({ sqlite, committed: () => {}, gather: async () => {} });
}

/** Bytes that tell where they stand. */
const bytesAt = (offset: number, length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (offset + index) % 251);

async function append(output: OutputDb, offset: number, length: number, keptBytesMax?: number) {
  const data = bytesAt(offset, length);
  const chunk = { offset, stream: "stdout", atMs: 1, data } as const;
  return appendOutput(output, commandId, [chunk], keptBytesMax);
}

async function readAll(output: OutputDb, bytesMax: number, from = 0): Promise<OutputPart[]> {
  const parts: OutputPart[] = [];
  for (let offset = from, more = true; more; ) {
    const page = await readOutput(output.read, commandId, { offset, bytesMax });
    expect(page.end).toBeGreaterThanOrEqual(offset);
    expect(page.more ? page.end > offset : true).toBe(true);
    parts.push(...page.parts);
    ({ end: offset, more } = page);
  }
  return parts;
}

/** Checks that the parts follow each other from `from` to `to` and hold the right bytes. */
function checkParts(parts: readonly OutputPart[], from: number, to: number): number[] {
  const gaps: number[] = [];
  let at = from;
  for (const part of parts) {
    if (part.kind === "gap") {
      expect(part.from).toBe(at);
      gaps.push(part.from, part.to);
      at = part.to;
      continue;
    }
    expect(part.offset).toBe(at);
    expect(Buffer.from(part.data)).toEqual(Buffer.from(bytesAt(at, part.data.length)));
    at += part.data.length;
  }
  expect(at).toBe(to);
  return gaps;
}

const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 });

test("chunks sent again, whole or in part, are stored once and nothing is missing", async () => {
  const resend = fc.record({ length: fc.integer({ min: 1, max: 40 }), back: fc.nat(60) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(resend, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 100 }),
      async (chunks, bytesMax) => {
        const output = await opened();
        let end = 0;
        for (const { length, back } of chunks) {
          const offset = Math.max(0, end - back);
          end = Math.max(end, offset + length);
          expect(await append(output, offset, length)).toBe(end);
        }
        expect(await extentOf(output.read, commandId)).toEqual({ endBytes: end, keptBytes: end });
        expect(checkParts(await readAll(output, bytesMax), 0, end)).toEqual([]);
      },
    ),
    { numRuns: 50 },
  );
});

test("chunks stored together are as if they had come one by one, resent or not", async () => {
  const resend = fc.record({ length: fc.integer({ min: 1, max: 40 }), back: fc.nat(60) });
  const batches = fc.array(fc.array(resend, { minLength: 1, maxLength: 8 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(batches, async (each) => {
      const output = await opened();
      let end = 0;
      for (const batch of each) {
        const chunks = batch.map(({ length, back }) => {
          const offset = Math.max(0, end - back);
          end = Math.max(end, offset + length);
          return { offset, stream: "stdout", atMs: 1, data: bytesAt(offset, length) } as const;
        });
        expect(await appendOutput(output, commandId, chunks)).toBe(end);
      }
      expect(checkParts(await readAll(output, 1_000), 0, end)).toEqual([]);
    }),
    { numRuns: 50 },
  );
});

test("a chunk behind a hole is not stored", async () => {
  const output = await opened();
  await append(output, 0, 10);
  expect(await append(output, 11, 5)).toBeUndefined();
  expect(await extentOf(output.read, commandId)).toEqual({ endBytes: 10, keptBytes: 10 });
});

test("over the cap the head and the newest stay, and one gap tells what is missing", async () => {
  const keptBytesMax = 200;
  await fc.assert(
    fc.asyncProperty(lengths, fc.integer({ min: 1, max: 300 }), async (each, bytesMax) => {
      const output = await opened();
      let end = 0;
      for (const length of [...each, ...each, ...each]) {
        await append(output, end, length, keptBytesMax);
        end += length;
      }
      const { endBytes, keptBytes } = await extentOf(output.read, commandId);
      expect(endBytes).toBe(end);
      expect(keptBytes).toBeLessThanOrEqual(keptBytesMax);
      const gaps = checkParts(await readAll(output, bytesMax), 0, end);
      const [from = 0, to = 0] = gaps;
      expect(gaps.length).toBe(keptBytes === end ? 0 : 2);
      expect(end - keptBytes).toBe(to - from);
      const gap = await gapOf(output.read, commandId, keptBytesMax);
      expect(gap).toEqual(gaps.length === 0 ? undefined : { from, to });
      if (gaps.length === 0) return;
      // The head is at least half, and the newest chunk is never dropped.
      expect(from).toBeGreaterThanOrEqual(keptBytesMax / 2);
      expect(to).toBeLessThan(end);
    }),
    { numRuns: 50 },
  );
});

test("reading may begin anywhere, also within a chunk or the gap", async () => {
  const output = await opened();
  let end = 0;
  for (let count = 0; count < 40; count++) {
    await append(output, end, 17, 200);
    end += 17;
  }
  for (let from = 0; from <= end; from += 5) checkParts(await readAll(output, 31, from), from, end);
});

test("the streams keep their order and their times", async () => {
  const output = await opened();
  const streams = ["stdout", "stderr", "stderr", "stdout"] as const;
  for (const [index, stream] of streams.entries()) {
    const data = bytesAt(index * 3, 3);
    await appendOutput(output, commandId, [{ offset: index * 3, stream, atMs: index, data }]);
  }
  const parts = await readAll(output, 1_000);
  expect(parts.map((part) => part.kind === "chunk" && [part.stream, part.atMs])).toEqual(
    streams.map((stream, index) => [stream, index]),
  );
});

test("what is removed is gone, and only that", async () => {
  const output = await opened();
  await append(output, 0, 10);
  const data = bytesAt(0, 4);
  await appendOutput(output, "cmd_2", [{ offset: 0, stream: "stdout", atMs: 1, data }]);
  await removeOutput(output, commandId);
  expect((await extentOf(output.read, commandId)).endBytes).toBe(0);
  expect((await readAll(output, 100)).length).toBe(0);
  expect((await extentOf(output.read, "cmd_2")).endBytes).toBe(4);
});
