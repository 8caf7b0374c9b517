/** A command's output over HTTP: pages, live events, or raw bytes, by what the client accepts. */
import { z } from "@hono/zod-openapi";
import { getCommand } from "../commands/store.ts";
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
import { followEvents, gapHeaders, rawBytes, streamOf } from "./output-streams.ts";
import type { ApiContext, ApiPorts } from "./ports.ts";
import { makeApp, reading } from "./routes.ts";
import { cursorQuery, idParam, queryInteger, strict, waitQuery } from "./schemas.ts";
import { lookUntil } from "./waiting.ts";

const pageSchema = z
  .object({
    parts: z.array(partSchema),
    cursor: z.string().openapi({ description: "Where to go on." }),
    more: z.boolean().openapi({ description: "Whether more is stored already." }),
    complete: z.boolean().openapi({ description: "Whether nothing more will ever come." }),
  })
  .openapi("OutputPage");

const text = { schema: z.string() };

const getOutput = reading({
  method: "get",
  path: "/v1/commands/{id}/output",
  operationId: "readOutput",
  summary: "Read a command's output",
  description:
    "JSON pages by default. `Accept: text/event-stream` follows it live (events output, gap, " +
    "state, end; resume with Last-Event-ID). `Accept: text/plain` or application/octet-stream " +
    "gives the raw bytes stored so far; where bytes were not kept, Holdfast-Output-Gap says which, " +
    "and text/plain has a line `[holdfast: N bytes not kept]` in their place.",
  request: {
    params: idParam,
    query: strict({
      cursor: cursorQuery,
      limit_bytes: queryInteger({
        min: 1,
        max: 4 * MiB,
        fallback: 1 * MiB,
        description: "Bytes of output on one page.",
      }),
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
    const { cursor, stream, wait, limit_bytes: bytesMax } = c.req.valid("query");
    const lastSeen = c.req.header("last-event-id") ?? cursor;
    const accept = wantedType(c.req.header("accept"));
    const offset = offsetOf(ports, commandId, accept === "text/event-stream" ? lastSeen : cursor);
    const wanted = { commandId, offset, stream };
    if (accept === "text/event-stream") return events(ports, wanted);
    if (accept !== undefined) return raw(c, ports, { ...wanted, accept });
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
}

function events(ports: ApiPorts, wanted: Wanted): Response {
  return new Response(streamOf(followEvents(ports, wanted)), {
    headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
  });
}

type Raw = Wanted & { accept: "text/plain" | "application/octet-stream" };

async function raw(c: ApiContext, ports: ApiPorts, { accept, ...wanted }: Raw): Promise<Response> {
  const marksGaps = accept === "text/plain";
  const type = marksGaps ? "text/plain; charset=utf-8" : accept;
  const headers = { "Content-Type": type, ...(await gapHeaders(ports, wanted.commandId)) };
  if (c.req.method === "HEAD") return new Response(null, { headers });
  return new Response(streamOf(rawBytes(ports, { ...wanted, marksGaps })), { headers });
}
