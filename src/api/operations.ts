/** What is under way because somebody asked for it: a workflow, as clients see it. */
import { z } from "@hono/zod-openapi";
import { Fault } from "../core/fault.ts";
import { phaseReasons } from "../sandboxes/sandbox.ts";
import { topics } from "../system/signals.ts";
import { findWorkflow, type WorkflowRow } from "../workflow/store.ts";
import type { ApiPorts } from "./ports.ts";
import { makeApp, reading } from "./routes.ts";
import { idParam, json, strict, timeOf, timeSchema, waitQuery } from "./schemas.ts";
import { lookUntil } from "./waiting.ts";

const kinds = { startSandbox: "start", stopSandbox: "stop", deleteSandbox: "delete" } as const;

export const operationSchema = z
  .object({
    id: z.string(),
    kind: z.enum(["start", "stop", "delete"]),
    sandbox_id: z.string(),
    state: z.enum(["running", "succeeded", "failed", "superseded"]),
    step: z.string().openapi({ description: "For people: what is being done." }),
    attempt: z.int().openapi({ description: "Tries of this step so far." }),
    problem: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .openapi({ description: "Why it failed, or why its newest try did." }),
    started_at: timeSchema,
    finished_at: timeSchema.nullable(),
  })
  .openapi("Operation");
export type OperationView = z.infer<typeof operationSchema>;

export function viewOperation(row: WorkflowRow): OperationView {
  return {
    id: row.id,
    kind: kinds[row.name as keyof typeof kinds],
    sandbox_id: row.subject,
    state: stateOf(row),
    step: row.step,
    attempt: row.attempt,
    problem: row.problem === null ? null : { code: row.problem, message: messageOf(row.problem) },
    started_at: timeOf(row.started_at_ms),
    finished_at: timeOf(row.finished_at_ms),
  };
}

/** A stop or delete that had to use force has still done what was asked. */
function stateOf(row: WorkflowRow): OperationView["state"] {
  if (row.outcome === null) return "running";
  if (row.outcome === "superseded") return "superseded";
  return row.outcome === "gave_up" && row.name === "startSandbox" ? "failed" : "succeeded";
}

function messageOf(problem: string): string {
  if (problem === "deadline") return "Its time limit passed.";
  const known = phaseReasons as Readonly<Record<string, string>>;
  return known[problem] ?? "The sandbox's phase_message has the reason; the log the cause.";
}

const getOperation = reading({
  method: "get",
  path: "/v1/operations/{id}",
  operationId: "getOperation",
  summary: "How an operation stands",
  request: { params: idParam, query: strict({ wait: waitQuery }) },
  responses: { 200: json(operationSchema, "The operation") },
});

export const operationRoutes = (ports: ApiPorts) =>
  makeApp().openapi(getOperation, async (c) => {
    const { id } = c.req.valid("param");
    const row = await lookUntil(ports, {
      topic: topics.workflows,
      waitSeconds: c.req.valid("query").wait,
      look: () => findOperation(ports, id),
      isThere: ({ outcome }) => outcome !== null,
    });
    return c.json(viewOperation(row), 200);
  });

async function findOperation(ports: ApiPorts, id: string): Promise<WorkflowRow> {
  const row = await findWorkflow(ports.db.read, id);
  if (row) return row;
  throw new Fault("missing", `no operation "${id}"`, { code: "operation_not_found" });
}
