/** API keys over HTTP. A secret is shown once, in the first answer, and cannot be had again. */
import { z } from "@hono/zod-openapi";
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import type { Tx } from "../db/open.ts";
import type { Clock } from "../system/clock.ts";
import type { Random } from "../system/random.ts";
import { hashSecret, type KnownKeys, makeSecret } from "./auth.ts";
import { change } from "./idempotency.ts";
import { readRows } from "./paging.ts";
import type { ApiPorts } from "./ports.ts";
import { changing, makeApp, reading } from "./routes.ts";
import {
  cursorQuery,
  idempotencyHeader,
  idParam,
  json,
  limitQuery,
  pageOf,
  strict,
  timeOf,
  timeSchema,
} from "./schemas.ts";
import {
  type ApiKeyRow,
  getApiKey,
  insertApiKey,
  listApiKeys,
  revokeApiKey,
  type Scope,
} from "./store.ts";

const scopeSchema = z
  .enum(["admin", "operate", "read"])
  .openapi({ description: "read: look; operate: also change; admin: also API keys." });
const nameSchema = z
  .string()
  .regex(/^[\x20-\x7e]{1,63}$/, "must be 1 to 63 printable ASCII characters");

const apiKeySchema = z
  .object({
    id: z.string(),
    name: z.string(),
    scope: scopeSchema,
    created_at: timeSchema,
    revoked_at: timeSchema.nullable(),
  })
  .openapi("ApiKey");
const madeSchema = apiKeySchema
  .extend({
    secret: z.string().nullable().openapi({ description: "Shown once: null in a replay." }),
  })
  .openapi("ApiKeyWithSecret");

type MadeView = z.infer<typeof madeSchema>;

export interface MadeKey {
  row: ApiKeyRow;
  secret: string;
}

type Making = { readonly clock: Clock; readonly random: Random };

export async function makeApiKey(
  tx: Tx,
  { clock, random }: Making,
  { name, scope }: { name: string; scope: Scope },
): Promise<MadeKey> {
  const secret = makeSecret(random);
  const created_at_ms = clock.now();
  const id = makeId("apiKey", created_at_ms, random.bytes(10));
  const row = { id, name, scope, secret_sha256: hashSecret(secret), created_at_ms };
  await insertApiKey(tx, row);
  return { row: { ...row, revoked_at_ms: null }, secret };
}

function viewKey(row: ApiKeyRow): z.infer<typeof apiKeySchema> {
  const { id, name, scope, created_at_ms, revoked_at_ms } = row;
  return { id, name, scope, created_at: timeOf(created_at_ms), revoked_at: timeOf(revoked_at_ms) };
}

const getKeys = reading(
  {
    method: "get",
    path: "/v1/api-keys",
    operationId: "listApiKeys",
    summary: "List API keys, newest first, revoked ones too",
    request: { query: strict({ limit: limitQuery, cursor: cursorQuery }) },
    responses: { 200: json(pageOf(apiKeySchema), "One page") },
  },
  "admin",
);

const postKey = changing(
  {
    method: "post",
    path: "/v1/api-keys",
    operationId: "createApiKey",
    summary: "Create an API key",
    request: {
      headers: idempotencyHeader,
      body: {
        ...json(strict({ name: nameSchema, scope: scopeSchema }), "Name and scope"),
        required: true,
      },
    },
    responses: { 201: json(madeSchema, "Created; the secret is shown here only") },
  },
  "admin",
);

const deleteKey = changing(
  {
    method: "delete",
    path: "/v1/api-keys/{id}",
    operationId: "revokeApiKey",
    summary: "Revoke an API key at once",
    request: { params: idParam, headers: idempotencyHeader },
    responses: { 200: json(apiKeySchema, "Revoked") },
  },
  "admin",
);

export const apiKeyRoutes = (ports: ApiPorts, keys: KnownKeys) =>
  makeApp()
    .openapi(getKeys, async (c) => {
      const { limit, cursor } = c.req.valid("query");
      const { rows, next_cursor } = await readRows(ports, {
        purpose: "api-keys",
        cursor,
        limit,
        list: (from) => listApiKeys(ports.db.read, from.before, from.limit),
      });
      return c.json({ data: rows.map(viewKey), next_cursor }, 200);
    })
    .openapi(postKey, async (c) => {
      const answer = await change(c, ports, {
        work: async (tx) => {
          const { row, secret } = await makeApiKey(tx, ports, c.req.valid("json"));
          const keptBody: MadeView = { ...viewKey(row), secret: null };
          const body: MadeView = { ...keptBody, secret };
          return { status: 201 as const, body, keptBody };
        },
      });
      c.header("Location", `/v1/api-keys/${answer.body.id}`);
      return c.json(answer.body, answer.status);
    })
    .openapi(deleteKey, async (c) => {
      const { id } = c.req.valid("param");
      const answer = await change(c, ports, {
        work: async (tx) => {
          await revokeApiKey(tx, id, ports.clock.now());
          keys.forget();
          return { status: 200 as const, body: viewKey(await existing(tx, id)) };
        },
      });
      return c.json(answer.body, answer.status);
    });

async function existing(tx: Tx, id: string): Promise<ApiKeyRow> {
  const row = await getApiKey(tx, id);
  if (row) return row;
  throw new Fault("missing", `no API key "${id}"`, { code: "api_key_not_found" });
}
