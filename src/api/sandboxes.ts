/** Sandboxes over HTTP: create, look, change, start, stop, delete. */
import type { z } from "@hono/zod-openapi";
import { Fault } from "../core/fault.ts";
import type { Tx } from "../db/open.ts";
import { recordEvent } from "../events/store.ts";
import { createSandbox, refuseTakenName } from "../sandboxes/create.ts";
import { requestDelete } from "../sandboxes/delete.ts";
import type { SandboxRow } from "../sandboxes/sandbox.ts";
import { requestStart } from "../sandboxes/start.ts";
import { requestStop } from "../sandboxes/stop.ts";
import { changeSandbox, getBusy, getSandbox, listSandboxes } from "../sandboxes/store.ts";
import { topics } from "../system/signals.ts";
import { findWorkflow, liveWorkflowOf } from "../workflow/store.ts";
import { chooseBase } from "./bases.ts";
import { type Answer, change } from "./idempotency.ts";
import { viewOperation } from "./operations.ts";
import { readRows } from "./paging.ts";
import type { ApiPorts } from "./ports.ts";
import { makeApp } from "./routes.ts";
import * as routes from "./sandbox-routes.ts";
import { viewSandbox } from "./sandbox-view.ts";
import { lookUntil } from "./waiting.ts";

export const sandboxRoutes = (ports: ApiPorts) =>
  makeApp()
    .openapi(routes.postSandbox, async (c) => {
      const wanted = c.req.valid("json");
      const answer = await change(c, ports, {
        prepare: () => chooseBase(ports, wanted.base),
        work: async (tx, base) => {
          const { name, size, labels } = wanted;
          const row = await createSandbox(tx, ports, { name, size, labels, base });
          return { status: 201 as const, body: viewSandbox(ports.sightings, row) };
        },
      });
      c.header("Location", `/v1/sandboxes/${answer.body.id}`);
      return c.json(answer.body, answer.status);
    })
    .openapi(routes.getSandboxes, async (c) => {
      const { phase, limit, cursor, ...others } = c.req.valid("query");
      const labels = labelsOf(others);
      const purpose = JSON.stringify(["sandboxes", phase ?? [], Object.entries(labels).toSorted()]);
      const list = (from: { before: string | undefined; limit: number }) =>
        listSandboxes(ports.db.read, { phases: phase, labels, ...from });
      const { rows, next_cursor } = await readRows(ports, { purpose, cursor, limit, list });
      const data = rows.map((row) => viewSandbox(ports.sightings, row));
      return c.json({ data, next_cursor }, 200);
    })
    .openapi(routes.getOne, async (c) => {
      const found = await getBusy(ports.db.read, c.req.valid("param").id);
      const { wait_for, wait: waitSeconds } = c.req.valid("query");
      const row = !wait_for
        ? found
        : await lookUntil(ports, {
            topic: topics.sandbox(found.id),
            waitSeconds,
            look: () => getBusy(ports.db.read, found.id),
            isThere: ({ phase }) => wait_for.includes(phase),
          });
      return c.json(viewSandbox(ports.sightings, row), 200);
    })
    .openapi(routes.patchOne, async (c) => {
      const { name, labels } = c.req.valid("json");
      const answer = await change(c, ports, {
        work: async (tx) => {
          const row = await getLiving(tx, c.req.valid("param").id);
          if (name !== undefined && name !== row.name) await refuseTakenName(tx, name);
          await changeSandbox(tx, row.id, {
            name: name ?? row.name,
            labels: labels ? JSON.stringify(labels) : row.labels,
          });
          const changed = await getBusy(tx, row.id);
          await recordEvent(tx, {
            type: "sandbox.changed",
            atMs: ports.clock.now(),
            sandboxId: row.id,
            data: { name: changed.name, labels: JSON.parse(changed.labels) as unknown },
          });
          return { status: 200 as const, body: viewSandbox(ports.sightings, changed) };
        },
      });
      return c.json(answer.body, answer.status);
    })
    .openapi(routes.postStart, async (c) => {
      const { id } = c.req.valid("param");
      const work = (tx: Tx) => underWayOf(tx, ports, { id, ask: requestStart });
      const { body, status } = await change(c, ports, { work });
      return c.json(body, status);
    })
    .openapi(routes.postStop, async (c) => {
      const { id } = c.req.valid("param");
      const work = (tx: Tx) => underWayOf(tx, ports, { id, ask: requestStop });
      const { body, status } = await change(c, ports, { work });
      return c.json(body, status);
    })
    .openapi(routes.deleteOne, async (c) => {
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

type UnderWay = z.infer<typeof routes.underWay>;

/** Asks, and tells which operation is under way: the new one, or the one that does it already. */
async function underWayOf(
  tx: Tx,
  ports: ApiPorts,
  { id, ask }: Wish,
): Promise<Answer<UnderWay, 200 | 202>> {
  const before = await getSandbox(tx, id);
  const { operation } = await ask(tx, ports, before);
  const row = await getBusy(tx, before.id);
  const live = operation ? await findWorkflow(tx, operation) : await liveWorkflowOf(tx, row.id);
  const sandbox = viewSandbox(ports.sightings, row);
  const body = { sandbox, operation: live ? viewOperation(live) : null };
  return { status: live ? 202 : 200, body };
}
