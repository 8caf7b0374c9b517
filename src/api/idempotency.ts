/**
 * Every change happens once per idempotency key. The key, its answer and the change commit in one
 * transaction, so a retry finds all of it or nothing. A refusal changed nothing and is not kept:
 * sending it again asks again.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { Fault } from "../core/fault.ts";
import { dayMs, hourMs, secondMs } from "../core/units.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Clock } from "../system/clock.ts";
import type { Log } from "../system/log.ts";
import { Patience } from "./patience.ts";
import type { ApiContext, ApiPorts } from "./ports.ts";
import { dropAnswersBefore, findAnswer, type KeptAnswer, keepAnswer } from "./store.ts";

export const keyLengthMax = 255;
const keyPattern = /^[\x21-\x7e]{1,255}$/;
/** Twice what is promised, so that a purge never races a client's last retry. */
const keptMs = 4 * dayMs;
const purgePeriodMs = hourMs;
/** Between two steps of a purge. */
const pauseMs = 100;
/** How long a request waits for an equal one that is still being carried out. */
const equalWaitMs = 5 * secondMs;

export interface Answer<Body, Status extends number> {
  status: Status;
  body: Body;
  /** The command that was made; its record keeps the key for as long as it lives. */
  commandId?: string;
  /** What a replay says instead, where the answer has a secret that is shown once. */
  keptBody?: Body;
}

export interface Change<Prepared, Body, Status extends number> {
  /** What must be looked up outside the database first. Not done for a replay. */
  prepare?: () => Promise<Prepared>;
  work: (tx: Tx, prepared: Prepared) => Promise<Answer<Body, Status>>;
}

/** @throws Fault `malformed` no usable key. */
export function checkKey(c: ApiContext): void {
  const key = c.req.header("idempotency-key");
  if (key === undefined || key === "")
    throw new Fault("malformed", "a change needs an idempotency key", {
      code: "idempotency_key_missing",
      hint: "add the header Idempotency-Key: any text not used before, and the same one to send it again",
      details: { header: "Idempotency-Key" },
    });
  if (!keyPattern.test(key))
    throw new Fault("malformed", "the idempotency key has characters or a length not taken", {
      code: "idempotency_key_invalid",
      hint: `use 1 to ${keyLengthMax} visible ASCII characters without spaces`,
    });
}

/**
 * Carries out a change, or answers as it was answered before.
 * @throws Fault `conflict` the key was used for another request.
 */
export async function change<Body, Status extends number, Prepared = undefined>(
  c: ApiContext,
  ports: ApiPorts,
  wanted: Change<Prepared, Body, Status>,
): Promise<{ status: Status; body: Body }> {
  const request = requestOf(c);
  const early =
    wanted.prepare && (await findAnswer(ports.db.read, request.api_key_id, request.key));
  if (early) return replay(c, request, early);
  const prepared = (await wanted.prepare?.()) as Prepared;
  const work = ports.db.write(async (tx) => {
    const kept = await findAnswer(tx, request.api_key_id, request.key);
    if (kept) return replay<Body, Status>(c, request, kept);
    const answer = await wanted.work(tx, prepared);
    await keepAnswer(tx, rowOf(request, answer, ports.clock.now()));
    return { status: answer.status, body: answer.body };
  });
  return c.get("patience").wait(work);
}

/** A stalled disk: the change may still happen, and the same key will tell. */
export const makePatience = (clock: Clock): Patience =>
  new Patience(
    clock,
    equalWaitMs,
    () =>
      new Fault("conflict", "the change is still being carried out", {
        code: "idempotency_in_progress",
        hint: "send it again with the same Idempotency-Key",
        retryAfterSeconds: 1,
      }),
  );

interface KeyedRequest {
  api_key_id: string;
  key: string;
  request_sha256: Uint8Array;
}

function requestOf(c: ApiContext): KeyedRequest {
  const { url } = c.req;
  const search = url.includes("?") ? new URL(url).search : "";
  const parts = [c.req.method, c.req.path, search, canonical(c.get("json"))];
  return {
    api_key_id: c.get("apiKey").id,
    key: c.req.header("idempotency-key") ?? "",
    request_sha256: hash("sha256", JSON.stringify(parts), "buffer"),
  };
}

/** The same text for the same value, whatever the order of its keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

function rowOf(request: KeyedRequest, answer: Answer<unknown, number>, nowMs: number): KeptAnswer {
  return {
    ...request,
    status: answer.status,
    body: JSON.stringify(answer.keptBody ?? answer.body),
    command_id: answer.commandId ?? null,
    created_at_ms: nowMs,
  };
}

function replay<Body, Status extends number>(
  c: ApiContext,
  request: KeyedRequest,
  kept: KeptAnswer,
): { status: Status; body: Body } {
  if (!timingSafeEqual(request.request_sha256, kept.request_sha256))
    throw new Fault("conflict", "the idempotency key was used for another request", {
      code: "idempotency_conflict",
      hint: "use a new key for a new request, and the same key only to repeat one unchanged",
    });
  c.header("Idempotent-Replayed", "true");
  return { status: kept.status as Status, body: JSON.parse(kept.body) as Body };
}

/** Forgets old answers for as long as the process lives. */
export async function purgeAnswers({ db, clock, log }: PurgePorts): Promise<never> {
  while (true) {
    try {
      const beforeMs = clock.now() - keptMs;
      while ((await db.write((tx) => dropAnswersBefore(tx, beforeMs))) > 0)
        await clock.sleep(pauseMs);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      log.error("forgetting old answers failed", error);
    }
    await clock.sleep(purgePeriodMs);
  }
}

interface PurgePorts {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}
