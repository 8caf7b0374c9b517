/**
 * Output as it comes (server-sent events) and as raw bytes. Both read the store only when the client
 * has taken what it got before, so that a slow reader costs one page of memory.
 */
import { extentOf, type gapOf, type OutputPart } from "../commands/output.ts";
import { Fault } from "../core/fault.ts";
import { KiB, secondMs } from "../core/units.ts";
import { topics } from "../system/signals.ts";
import { viewCommand } from "./command-view.ts";
import { outputCursor, type Reading, readPage, viewGap, viewPart } from "./output-pages.ts";
import type { ApiPorts } from "./ports.ts";

const pageBytes = 256 * KiB;
const heartbeatMs = 15 * secondMs;

export type Following = Omit<Reading, "bytesMax">;

/** Bytes of a stream, made as they are asked for. What goes wrong on the way breaks it off. */
export function streamOf(
  { log, onBug }: Pick<ApiPorts, "log" | "onBug">,
  parts: AsyncGenerator<Uint8Array>,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          log.error("a stream was broken off", error);
          if (!(error instanceof Fault)) onBug(error);
          controller.error(error);
        }
      },
      async cancel() {
        await parts.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Events `output`, `gap`, `state` and `end`; ends with the command. */
export async function* followEvents(
  ports: ApiPorts,
  { commandId, offset: from, stream }: Following,
): AsyncGenerator<Uint8Array> {
  const changed = [topics.command(commandId), topics.output(commandId)];
  let offset = from;
  let told = "";
  yield encode("retry: 2000\n\n");
  while (true) {
    const signal = ports.signals.wait(changed, heartbeatMs);
    const page = await readPage(ports, { commandId, offset, stream, bytesMax: pageBytes });
    const extent = await extentOf(ports.output.read, commandId);
    const view = viewCommand(page.command, extent);
    if (page.command.state !== told) yield event("state", view);
    told = page.command.state;
    for (const part of page.parts) {
      offset = endOf(part);
      yield partEvent(part, outputCursor(ports, commandId, offset));
    }
    offset = page.end;
    if (page.complete) return yield event("end", view, outputCursor(ports, commandId, offset));
    const before = ports.clock.monotonic();
    if (page.parts.length === 0 && !page.more) await signal;
    if (ports.clock.monotonic() - before >= heartbeatMs) yield encode(": still here\n\n");
  }
}

const endOf = (part: OutputPart): number =>
  part.kind === "gap" ? part.to : part.offset + part.data.length;

function partEvent(part: OutputPart, cursor: string): Uint8Array {
  if (part.kind === "gap") return event("gap", viewGap(part), cursor);
  return event("output", viewPart(part), cursor);
}

export function event(name: string, data: unknown, id?: string): Uint8Array {
  const head = id === undefined ? "" : `id: ${id}\n`;
  return encode(`${head}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export interface RawReading extends Following {
  /** Whether a gap is written as a line where it is; else only the announced one is passed over. */
  marksGaps: boolean;
  announced: Gap | undefined;
  /** Where to end; bytes that come later are not waited for. */
  until: number;
}

type Gap = NonNullable<Awaited<ReturnType<typeof gapOf>>>;

/** What is stored from the offset on. */
export async function* rawBytes(
  ports: ApiPorts,
  { commandId, offset: from, until, stream, marksGaps, announced }: RawReading,
): AsyncGenerator<Uint8Array> {
  let offset = from;
  while (offset < until) {
    const bytesMax = Math.min(pageBytes, until - offset);
    const page = await readPage(ports, { commandId, offset, stream, bytesMax });
    for (const part of page.parts) {
      if (part.kind === "chunk") yield part.data;
      else if (marksGaps) yield encode(`\n[holdfast: ${part.to - part.from} bytes not kept]\n`);
      else if (part.to !== announced?.to) throw grown(commandId);
    }
    if (page.end === offset) return;
    offset = page.end;
  }
}

/** The answer has begun: only breaking it off can tell that bytes are missing. */
function grown(commandId: string): Fault {
  return new Fault("unavailable", `output of ${commandId} went over its cap while it was read`);
}
