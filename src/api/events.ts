/** What happened, in its order: in pages, or as it comes with server-sent events. */
import { z } from "@hono/zod-openapi";
import { Fault } from "../core/fault.ts";
import { secondMs } from "../core/units.ts";
import { type EventRow, type EventType, eventIdOf, eventTypes, seqOf } from "../events/event.ts";
import { extentOfEvents, listEvents } from "../events/store.ts";
import { getSandbox } from "../sandboxes/store.ts";
import { topics } from "../system/signals.ts";
import { encode, event, streamOf } from "./output-streams.ts";
import type { ApiPorts } from "./ports.ts";
import { makeApp, reading } from "./routes.ts";
import { limitQuery, queryWords, strict, timeOf, timeSchema, waitQuery } from "./schemas.ts";
import { lookUntil } from "./waiting.ts";

const types = Object.keys(eventTypes) as [EventType, ...EventType[]];
const typesText = types.map((type) => `${type} (${eventTypes[type]})`).join(", ");
const heartbeatMs = 15 * secondMs;
const streamedAtOnce = 100;

const eventSchema = z
  .object({
    id: z.string(),
    type: z.enum(types),
    at: timeSchema,
    sandbox_id: z.string(),
    command_id: z.string().nullable(),
    data: z.record(z.string(), z.unknown()).openapi({ description: `By type: ${typesText}.` }),
  })
  .openapi("Event");
export type EventView = z.infer<typeof eventSchema>;

const pageSchema = z
  .object({
    data: z.array(eventSchema),
    next_after: z.string().openapi({ description: "Give it as `after` to go on." }),
    missed: z.boolean().openapi({
      description: "Whether events behind `after` are not kept any more: look at the whole again.",
    }),
  })
  .openapi("EventPage");

const getEvents = reading({
  method: "get",
  path: "/v1/events",
  operationId: "listEvents",
  summary: "What happened, oldest first",
  description:
    "Pages by default; without `after` from the oldest that is kept. `Accept: text/event-stream` " +
    "follows: without `after` and Last-Event-ID from now on. An event `missed` says that some are " +
    "not kept any more. Written in one transaction with what they tell of.",
  request: {
    query: strict({
      after: z.string().max(64).optional().openapi({ description: "An event's id, or `latest`." }),
      types: queryWords(types, "Only events of these types"),
      sandbox: z.string().max(63).optional().openapi({ description: "Id or name of a sandbox." }),
      limit: limitQuery,
      wait: waitQuery,
    }),
  },
  responses: {
    200: {
      description: "Events",
      content: {
        "application/json": { schema: pageSchema },
        "text/event-stream": { schema: z.string() },
      },
    },
  },
});

interface Wanted {
  types: readonly EventType[] | undefined;
  sandboxId: string | undefined;
}

export const eventRoutes = (ports: ApiPorts) =>
  makeApp().openapi(getEvents, async (c) => {
    const { sandbox, limit, wait, ...query } = c.req.valid("query");
    const found = sandbox === undefined ? undefined : await getSandbox(ports.db.read, sandbox);
    const wanted: Wanted = { types: query.types, sandboxId: found?.id };
    const follows = (c.req.header("accept") ?? "").includes("text/event-stream");
    const last = follows ? c.req.header("last-event-id") : undefined;
    const { newest } = await extentOfEvents(ports.db.read);
    const after = seqAfter(last ?? query.after, newest);
    if (follows) {
      const headers = { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" };
      return new Response(streamOf(ports, follow(ports, wanted, after ?? newest)), { headers });
    }
    const from = after ?? 0;
    const rows = await lookUntil(ports, {
      topic: topics.events,
      waitSeconds: wait,
      look: () => listEvents(ports.db.read, { after: from, limit, ...wanted }),
      isThere: ({ length }) => length > 0,
    });
    const missed = after !== undefined && (await hasMissed(ports, after));
    const next_after = eventIdOf(rows.at(-1)?.seq ?? from);
    return c.json({ data: rows.map(viewEvent), next_after, missed }, 200);
  });

/** @throws Fault `malformed` no id of an event. */
function seqAfter(id: string | undefined, newest: number): number | undefined {
  if (id === undefined) return undefined;
  if (id === "latest") return newest;
  const seq = seqOf(id);
  if (seq !== undefined) return seq;
  throw new Fault("malformed", "`after` is no event's id", {
    code: "invalid_cursor",
    hint: "use an id as it was handed out, or begin without one",
  });
}

/** Whether what followed this one was forgotten already. */
async function hasMissed({ db }: ApiPorts, after: number): Promise<boolean> {
  const { oldest } = await extentOfEvents(db.read);
  return oldest > after + 1;
}

async function* follow(ports: ApiPorts, wanted: Wanted, from: number): AsyncGenerator<Uint8Array> {
  let after = from;
  yield encode("retry: 2000\n\n");
  if (await hasMissed(ports, from)) yield event("missed", { after: eventIdOf(from) });
  while (true) {
    const signal = ports.signals.wait(topics.events, heartbeatMs);
    const { newest } = await extentOfEvents(ports.db.read);
    const rows = await listEvents(ports.db.read, { after, limit: streamedAtOnce, ...wanted });
    for (const row of rows) yield event(row.type, viewEvent(row), eventIdOf(row.seq));
    // What was passed over is not looked through again.
    const isFull = rows.length === streamedAtOnce;
    after = Math.max(rows.at(-1)?.seq ?? after, isFull ? 0 : newest);
    const before = ports.clock.monotonic();
    if (rows.length === 0) await signal;
    if (ports.clock.monotonic() - before >= heartbeatMs) yield encode(": still here\n\n");
  }
}

function viewEvent(row: EventRow): EventView {
  const { seq, type, at_ms, sandbox_id, command_id, data } = row;
  const parsed = JSON.parse(data) as Record<string, unknown>;
  return { id: eventIdOf(seq), type, at: timeOf(at_ms), sandbox_id, command_id, data: parsed };
}
