/** All SQL about API keys and idempotency keys. An API key's secret is never stored, only its hash. */
import type { Selectable } from "kysely";
import type { Reader, Tx } from "../db/open.ts";
import { stateQuery } from "../db/prepared.ts";
import type { ApiKeyTable, IdempotencyKeyTable } from "../db/schema.ts";

export type ApiKey = Pick<Selectable<ApiKeyTable>, "id" | "name" | "scope">;
export type ApiKeyRow = Selectable<ApiKeyTable>;
export type Scope = ApiKeyTable["scope"];
export type KeptAnswer = Selectable<IdempotencyKeyTable>;

const validKey = stateQuery((db, { digest }: { digest: Uint8Array }) =>
  db
    .selectFrom("api_keys")
    .selectAll()
    .where("secret_sha256", "=", digest)
    .where("revoked_at_ms", "is", null),
);

/** Undefined also for one that was revoked. */
export async function findApiKey(
  read: Reader,
  secretSha256: Uint8Array,
): Promise<ApiKeyRow | undefined> {
  const [found] = await read.all(validKey, { digest: Buffer.from(secretSha256) });
  return found;
}

export function getApiKey(read: Reader, id: string): Promise<ApiKeyRow | undefined> {
  return read.selectFrom("api_keys").selectAll().where("id", "=", id).executeTakeFirst();
}

/** Newest first, revoked ones too. */
export function listApiKeys(read: Reader, before: string | undefined, limit: number) {
  let query = read.selectFrom("api_keys").selectAll();
  if (before !== undefined) query = query.where("id", "<", before);
  return query.orderBy("id", "desc").limit(limit).execute();
}

export async function insertApiKey(tx: Tx, row: Omit<ApiKeyRow, "revoked_at_ms">): Promise<void> {
  await tx
    .insertInto("api_keys")
    .values({ ...row, secret_sha256: Buffer.from(row.secret_sha256), revoked_at_ms: null })
    .execute();
}

/** One that is revoked already keeps its time. */
export async function revokeApiKey(tx: Tx, id: string, nowMs: number): Promise<void> {
  await tx
    .updateTable("api_keys")
    .set({ revoked_at_ms: nowMs })
    .where("id", "=", id)
    .where("revoked_at_ms", "is", null)
    .execute();
}

const answerOf = stateQuery((db, { apiKeyId, key }: { apiKeyId: string; key: string }) =>
  db
    .selectFrom("idempotency_keys")
    .selectAll()
    .where("api_key_id", "=", apiKeyId)
    .where("key", "=", key),
);

export async function findAnswer(
  read: Reader,
  apiKeyId: string,
  key: string,
): Promise<KeptAnswer | undefined> {
  const [found] = await read.all(answerOf, { apiKeyId, key });
  return found;
}

const newAnswer = stateQuery((db, answer: KeptAnswer) =>
  db.insertInto("idempotency_keys").values({
    api_key_id: answer.api_key_id,
    key: answer.key,
    request_sha256: answer.request_sha256,
    status: answer.status,
    body: answer.body,
    command_id: answer.command_id,
    created_at_ms: answer.created_at_ms,
  }),
);

export async function keepAnswer(tx: Tx, answer: KeptAnswer): Promise<void> {
  await tx.all(newAnswer, { ...answer, request_sha256: Buffer.from(answer.request_sha256) });
}

const answersDroppedMax = 500;

/**
 * Forgets answers older than this, but never one that made a command: its record keeps them.
 * Returns how many it forgot; as long as there are any, there may be more.
 */
export async function dropAnswersBefore(tx: Tx, atMs: number): Promise<number> {
  const old = await tx
    .selectFrom("idempotency_keys")
    .select(["api_key_id", "key"])
    .where("created_at_ms", "<", atMs)
    .where("command_id", "is", null)
    .orderBy("created_at_ms")
    .limit(answersDroppedMax)
    .execute();
  if (old.length === 0) return 0;
  await tx
    .deleteFrom("idempotency_keys")
    .where(({ eb, refTuple, tuple }) =>
      eb(
        refTuple("api_key_id", "key"),
        "in",
        old.map(({ api_key_id, key }) => tuple(api_key_id, key)),
      ),
    )
    .execute();
  return old.length;
}
