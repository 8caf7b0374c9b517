/** A command's output over HTTP: pages, live events, or raw bytes, by what the client accepts. */
import { z } from "@hono/zod-openapi";
import { isFinal } from "../commands/command.ts";
import { extentOf, gapOf } from "../commands/output.ts";
import { getCommand } from "../commands/store.ts";
import { Fault } from "../core/fault.ts";
import { MiB } from "../core/units.ts";
import { topics } from "../system/signals.ts";
import {
  offsetOf,
  outputCursor,
  partSchema,
  readPage,
  type StreamChoice,
  viewPart,
} from "./output-pages.ts";
import { followEvents, rawBytes, streamOf } from "./output-streams.ts";
import type { ApiContext, ApiPorts } from "./ports.ts";
import { makeApp, reading } from "./routes.ts";
import { cursorQuery, idParam, strict, waitQuery } from "./schemas.ts";
import { lookUntil } from "./waiting.ts";

const pageSchema = z
  .object({
    parts: z.array(partSchema),
    cursor: z.string().openapi({ description: "Where to go on." }),
    more: z.boolean().openapi({ description: "Whether more is stored already." }),
    complete: z.boolean().openapi({ description: "Whether nothing more will ever come." }),
  })
  .openapi("OutputPage");

const pageBytes = 1 * MiB;
const pageBytesMax = 4 * MiB;
const limitSchema = z
  .string()
  .regex(/^[0-9]{1,9}$/, "must be a whole number")
  .transform(Number)
  .pipe(z.number().min(1).max(pageBytesMax))
  .openapi({
    param: { schema: { type: "integer", minimum: 1, maximum: pageBytesMax } },
    description: `Bytes of output at most; a JSON page without it has ${pageBytes}.`,
  });

const text = { schema: z.string() };

const getOutput = reading({
  method: "get",
  path: "/v1/commands/{id}/output",
  operationId: "readOutput",
  summary: "Read a command's output",
  description:
    "JSON pages by default. `Accept: text/event-stream` follows it live (events output, gap, " +
    "state, end; resume with Last-Event-ID). `Accept: text/plain` or application/octet-stream " +
    "gives the raw bytes stored so far, with wait= once it has ended; Holdfast-Output-Complete tells " +
    "whether that is all, Holdfast-Output-Cursor where to go on. Where bytes were not kept, " +
    "Holdfast-Output-Gap says which, and text/plain has a line `[holdfast: N bytes not kept]`.",
  request: {
    params: idParam,
    query: strict({
      cursor: cursorQuery,
      limit_bytes: limitSchema.optional(),
      wait: waitQuery,
      stream: z.enum(["all", "stdout", "stderr"]).default("all"),
    }),
  },
  responses: {
    200: {
      description: "Output, from the cursor on",
      content: {
        "application/json": { schema: pageSchema },
        "text/event-stream": text,
        "application/octet-stream": text,
        "text/plain": text,
      },
    },
  },
});

export const outputRoutes = (ports: ApiPorts) =>
  makeApp().openapi(getOutput, async (c) => {
    const { id: commandId } = await getCommand(ports.db.read, c.req.valid("param").id);
    const { cursor, stream, wait, limit_bytes } = c.req.valid("query");
    const accept = wantedType(c.req.header("accept"));
    const lastSeen = accept === "text/event-stream" ? c.req.header("last-event-id") : undefined;
    const offset = offsetOf(ports, commandId, lastSeen ?? cursor);
    const wanted = { commandId, offset, stream, wait, limit_bytes };
    if (accept === "text/event-stream") return events(ports, wanted);
    if (accept !== undefined) return raw(c, ports, { ...wanted, accept });
    const bytesMax = limit_bytes ?? pageBytes;
    const page = await lookUntil(ports, {
      topic: [topics.output(commandId), topics.command(commandId)],
      waitSeconds: wait,
      look: () => readPage(ports, { ...wanted, bytesMax }),
      isThere: ({ parts, more, complete }) => parts.length > 0 || more || complete,
    });
    const { more, complete, end } = page;
    const next = outputCursor(ports, commandId, end);
    return c.json({ parts: page.parts.map(viewPart), cursor: next, more, complete }, 200);
  });

const streamed = ["text/event-stream", "text/plain", "application/octet-stream"] as const;

/** The first of the media types in `Accept` that is not JSON; undefined = JSON. */
function wantedType(accept = ""): (typeof streamed)[number] | undefined {
  const types = accept.split(",").map((type) => type.split(";")[0]?.trim().toLowerCase());
  const first = types.find((type) => type === "application/json" || isStreamed(type));
  return isStreamed(first) ? first : undefined;
}

const isStreamed = (type: string | undefined): type is (typeof streamed)[number] =>
  streamed.some((each) => each === type);

interface Wanted {
  commandId: string;
  offset: number;
  stream: StreamChoice;
  wait: number;
  limit_bytes: number | undefined;
}

function events(ports: ApiPorts, { wait, limit_bytes, ...wanted }: Wanted): Response {
  if (wait > 0 || limit_bytes !== undefined)
    throw new Fault("invalid", "events take neither wait nor limit_bytes", {
      code: "invalid_request",
      hint: "leave them out: events come when there are some",
    });
  return new Response(streamOf(ports, followEvents(ports, wanted)), {
    headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
  });
}

type Raw = Wanted & { accept: "text/plain" | "application/octet-stream" };

/** What is stored now, or once the command has ended where that is waited for. */
async function raw(c: ApiContext, ports: ApiPorts, { accept, ...wanted }: Raw): Promise<Response> {
  const { commandId, offset, limit_bytes = Number.MAX_SAFE_INTEGER } = wanted;
  const command = await lookUntil(ports, {
    topic: topics.command(commandId),
    waitSeconds: wanted.wait,
    look: () => getCommand(ports.db.read, commandId),
    isThere: ({ state }) => isFinal(state),
  });
  const announced = await gapOf(ports.output.read, commandId);
  const { endBytes } = await extentOf(ports.output.read, commandId);
  const until = Math.min(endBytes, offset + limit_bytes);
  const marksGaps = accept === "text/plain";
  const headers = {
    "Content-Type": marksGaps ? "text/plain; charset=utf-8" : accept,
    "Holdfast-Output-Complete": String(isFinal(command.state) && until === endBytes),
    "Holdfast-Output-Cursor": outputCursor(ports, commandId, Math.max(until, offset)),
    ...(announced && { "Holdfast-Output-Gap": `${announced.from}-${announced.to}` }),
  };
  if (c.req.method === "HEAD") return new Response(null, { headers });
  const bytes = rawBytes(ports, { ...wanted, marksGaps, announced, until });
  return new Response(streamOf(ports, bytes), { headers });
}
