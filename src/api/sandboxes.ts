/** Sandboxes over HTTP: create, look, change, start, stop, delete. */
import { z } from "@hono/zod-openapi";
import { Fault } from "../core/fault.ts";
import type { Tx } from "../db/open.ts";
import { createSandbox, refuseTakenName } from "../sandboxes/create.ts";
import { requestDelete } from "../sandboxes/delete.ts";
import { labelLengthMax, labelsMax, namePattern, type SandboxRow } from "../sandboxes/sandbox.ts";
import { requestStart } from "../sandboxes/start.ts";
import { requestStop } from "../sandboxes/stop.ts";
import { changeSandbox, getSandbox, listSandboxes } from "../sandboxes/store.ts";
import { topics } from "../system/signals.ts";
import { findWorkflow, liveWorkflowOf } from "../workflow/store.ts";
import { chooseBase } from "./bases.ts";
import { openCursor, sealCursor } from "./cursors.ts";
import { type Answer, change } from "./idempotency.ts";
import { operationSchema, viewOperation } from "./operations.ts";
import type { ApiPorts } from "./ports.ts";
import { changing, makeApp, reading } from "./routes.ts";
import { phases, sandboxSchema, viewSandbox } from "./sandbox-view.ts";
import {
  cursorQuery,
  idempotencyHeader,
  idParam,
  json,
  limitQuery,
  pageOf,
  queryWords,
  strict,
  unknownNames,
  waitQuery,
} from "./schemas.ts";
import { lookUntil } from "./waiting.ts";

const nameSchema = z
  .string()
  .regex(namePattern, "must be 1 to 63 of a-z, 0-9 and -, with no - at either end")
  .openapi({ example: "web" });
const labelKey = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, "a label's name has 1 to 63 of A-Z a-z 0-9 . _ / -");
const labelsSchema = z
  .record(labelKey, z.string().max(labelLengthMax))
  .refine((labels) => Object.keys(labels).length <= labelsMax, `at most ${labelsMax} labels`);

const creationSchema = strict({
  name: nameSchema.optional(),
  size: z.string().max(63).optional(),
  base: z.string().max(200).optional().openapi({ description: "A base's digest or name." }),
  labels: labelsSchema.default({}),
});

const listQuery = z
  .looseObject({
    phase: queryWords(phases, "Only sandboxes in these phases"),
    limit: limitQuery,
    cursor: cursorQuery,
  })
  .superRefine((query, context) => {
    const known = ["phase", "limit", "cursor", "label.<name>"];
    for (const name of Object.keys(query)) {
      const isLabel = name.startsWith("label.") && labelKey.safeParse(name.slice(6)).success;
      if (known.includes(name) || (isLabel && typeof query[name] === "string")) continue;
      context.addIssue({ code: "custom", path: [name], message: unknownNames([name], known) });
    }
  });

const underWay = z.object({ sandbox: sandboxSchema, operation: operationSchema.nullable() });
const request = { params: idParam, headers: idempotencyHeader };
const nothing = { content: { "application/json": { schema: strict({}) } } };

const postSandbox = changing({
  method: "post",
  path: "/v1/sandboxes",
  operationId: "createSandbox",
  summary: "Create a sandbox; starts nothing",
  request: {
    headers: idempotencyHeader,
    body: { ...json(creationSchema, "What it is to be"), required: true },
  },
  responses: { 201: json(sandboxSchema, "Created, stopped") },
});

const getSandboxes = reading({
  method: "get",
  path: "/v1/sandboxes",
  operationId: "listSandboxes",
  summary: "List sandboxes, newest first",
  description: "Filter by labels with label.NAME=VALUE. Deleted ones only with phase=deleted.",
  request: { query: listQuery },
  responses: { 200: json(pageOf(sandboxSchema), "One page") },
});

const getOne = reading({
  method: "get",
  path: "/v1/sandboxes/{id}",
  operationId: "getSandbox",
  summary: "Get a sandbox by id or name, or wait for a phase",
  request: {
    params: idParam,
    query: strict({ wait_for: queryWords(phases, "Wait for a phase"), wait: waitQuery }),
  },
  responses: { 200: json(sandboxSchema, "As it was last observed") },
});

const patchOne = changing({
  method: "patch",
  path: "/v1/sandboxes/{id}",
  operationId: "changeSandbox",
  summary: "Rename a sandbox or replace its labels",
  request: {
    ...request,
    body: {
      ...json(strict({ name: nameSchema.optional(), labels: labelsSchema.optional() }), "Changes"),
      required: true,
    },
  },
  responses: { 200: json(sandboxSchema, "Changed") },
});

const postStart = changing({
  method: "post",
  path: "/v1/sandboxes/{id}/start",
  operationId: "startSandbox",
  summary: "Start a sandbox",
  request: { ...request, body: nothing },
  responses: { 200: json(underWay, "It runs already"), 202: json(underWay, "Under way") },
});

const postStop = changing({
  method: "post",
  path: "/v1/sandboxes/{id}/stop",
  operationId: "stopSandbox",
  summary: "Stop a sandbox: ends its work, keeps its disk",
  request: { ...request, body: nothing },
  responses: { 200: json(underWay, "It is stopped already"), 202: json(underWay, "Under way") },
});

const deleteOne = changing({
  method: "delete",
  path: "/v1/sandboxes/{id}",
  operationId: "deleteSandbox",
  summary: "Delete a sandbox and destroy its disk",
  request,
  responses: { 202: json(underWay, "Under way") },
});

export const sandboxRoutes = (ports: ApiPorts) =>
  makeApp()
    .openapi(postSandbox, async (c) => {
      const wanted = c.req.valid("json");
      const answer = await change(c, ports, {
        prepare: () => chooseBase(ports, wanted.base),
        work: async (tx, base) => {
          const { name, size, labels } = wanted;
          const row = await createSandbox(tx, ports, { name, size, labels, base });
          return { status: 201 as const, body: await viewSandbox(tx, ports.sightings, row) };
        },
      });
      c.header("Location", `/v1/sandboxes/${answer.body.id}`);
      return c.json(answer.body, answer.status);
    })
    .openapi(getSandboxes, async (c) => {
      const { phase, limit, cursor, ...others } = c.req.valid("query");
      const labels = labelsOf(others);
      const purpose = JSON.stringify(["sandboxes", phase ?? [], Object.entries(labels).toSorted()]);
      const before = openCursor(ports.host, purpose, cursor);
      const wanted = { phases: phase, labels, before, limit: limit + 1 };
      const rows = await listSandboxes(ports.db.read, wanted);
      const page = rows.slice(0, limit);
      const last = rows.length > limit ? page.at(-1) : undefined;
      const next_cursor = last ? sealCursor(ports.host, purpose, last.id) : null;
      const data = page.map((row) => viewSandbox(ports.db.read, ports.sightings, row));
      return c.json({ data: await Promise.all(data), next_cursor }, 200);
    })
    .openapi(getOne, async (c) => {
      const { id } = await getSandbox(ports.db.read, c.req.valid("param").id);
      const { wait_for, wait } = c.req.valid("query");
      const row = await lookUntil(ports, {
        topic: topics.sandbox(id),
        waitSeconds: wait_for ? wait : 0,
        look: () => getSandbox(ports.db.read, id),
        isThere: ({ phase }) => wait_for?.includes(phase) ?? true,
      });
      return c.json(await viewSandbox(ports.db.read, ports.sightings, row), 200);
    })
    .openapi(patchOne, async (c) => {
      const { name, labels } = c.req.valid("json");
      const answer = await change(c, ports, {
        work: async (tx) => {
          const row = await getLiving(tx, c.req.valid("param").id);
          if (name !== undefined && name !== row.name) await refuseTakenName(tx, name);
          await changeSandbox(tx, row.id, {
            name: name ?? row.name,
            labels: labels ? JSON.stringify(labels) : row.labels,
          });
          const changed = await getSandbox(tx, row.id);
          return { status: 200 as const, body: await viewSandbox(tx, ports.sightings, changed) };
        },
      });
      return c.json(answer.body, answer.status);
    })
    .openapi(postStart, async (c) => {
      const { id } = c.req.valid("param");
      const work = (tx: Tx) => underWayOf(tx, ports, { id, ask: requestStart });
      const { body, status } = await change(c, ports, { work });
      return c.json(body, status);
    })
    .openapi(postStop, async (c) => {
      const { id } = c.req.valid("param");
      const work = (tx: Tx) => underWayOf(tx, ports, { id, ask: requestStop });
      const { body, status } = await change(c, ports, { work });
      return c.json(body, status);
    })
    .openapi(deleteOne, async (c) => {
      const { id } = c.req.valid("param");
      const work = (tx: Tx) => underWayOf(tx, ports, { id, ask: requestDelete });
      const { body } = await change(c, ports, { work });
      return c.json(body, 202);
    });

function labelsOf(query: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name.slice("label.".length), String(value)]),
  );
}

async function getLiving(tx: Tx, id: string): Promise<SandboxRow> {
  const row = await getSandbox(tx, id);
  if (row.phase !== "deleted" && row.phase !== "deleting") return row;
  throw new Fault("conflict", `sandbox "${row.name}" is ${row.phase}`, {
    code: `sandbox_${row.phase}`,
    details: { phase: row.phase },
  });
}

interface Wish {
  id: string;
  ask: (tx: Tx, ports: ApiPorts, sandbox: SandboxRow) => Promise<{ operation: string | undefined }>;
}

type UnderWay = z.infer<typeof underWay>;

/** Asks, and tells which operation is under way: the new one, or the one that does it already. */
async function underWayOf(
  tx: Tx,
  ports: ApiPorts,
  { id, ask }: Wish,
): Promise<Answer<UnderWay, 200 | 202>> {
  const before = await getSandbox(tx, id);
  const { operation } = await ask(tx, ports, before);
  const row = await getSandbox(tx, before.id);
  const live = operation ? await findWorkflow(tx, operation) : await liveWorkflowOf(tx, row.id);
  const sandbox = await viewSandbox(tx, ports.sightings, row);
  const body = { sandbox, operation: live ? viewOperation(live) : null };
  return { status: live ? 202 : 200, body };
}
