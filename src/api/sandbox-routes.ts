/** The routes about sandboxes: what each takes and answers. What they do is in sandboxes.ts. */
import { z } from "@hono/zod-openapi";
import { labelLengthMax, labelsMax, namePattern } from "../sandboxes/sandbox.ts";
import { operationSchema } from "./operations.ts";
import { changing, reading } from "./routes.ts";
import { phases, sandboxSchema } from "./sandbox-view.ts";
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

export const underWay = z.object({ sandbox: sandboxSchema, operation: operationSchema.nullable() });
const request = { params: idParam, headers: idempotencyHeader };
const nothing = { content: { "application/json": { schema: strict({}) } } };

export const postSandbox = changing({
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

export const getSandboxes = reading({
  method: "get",
  path: "/v1/sandboxes",
  operationId: "listSandboxes",
  summary: "List sandboxes, newest first",
  description: "Filter by labels with label.NAME=VALUE. Deleted ones only with phase=deleted.",
  request: { query: listQuery },
  responses: { 200: json(pageOf(sandboxSchema), "One page") },
});

export const getOne = reading({
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

export const patchOne = changing({
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

export const postStart = changing({
  method: "post",
  path: "/v1/sandboxes/{id}/start",
  operationId: "startSandbox",
  summary: "Start a sandbox",
  request: { ...request, body: nothing },
  responses: { 200: json(underWay, "It runs already"), 202: json(underWay, "Under way") },
});

export const postStop = changing({
  method: "post",
  path: "/v1/sandboxes/{id}/stop",
  operationId: "stopSandbox",
  summary: "Stop a sandbox: ends its work, keeps its disk",
  request: { ...request, body: nothing },
  responses: { 200: json(underWay, "It is stopped already"), 202: json(underWay, "Under way") },
});

export const deleteOne = changing({
  method: "delete",
  path: "/v1/sandboxes/{id}",
  operationId: "deleteSandbox",
  summary: "Delete a sandbox and destroy its disk",
  request,
  responses: { 202: json(underWay, "Under way") },
});
