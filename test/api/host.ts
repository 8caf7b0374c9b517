/**
 * One host's API on a database in memory, with nothing behind it that works on its own: what a
 * request did is all that happened.
 */

import { makeApiKey } from "../../src/api/api-keys.ts";
import { createApi } from "../../src/api/app.ts";
import type { Api, ApiPorts } from "../../src/api/ports.ts";
import type { Scope } from "../../src/api/store.ts";
import { Fault } from "../../src/core/fault.ts";
import { dayMs, GiB } from "../../src/core/units.ts";
import { openOutput, openState } from "../../src/db/open.ts";
import { openBytes } from "../../src/db/sqlite.ts";
import { openHost } from "../../src/hosts/open.ts";
import type { Base } from "../../src/images/images.ts";
import { Sightings } from "../../src/sandboxes/sightings.ts";
import { defaultSizes } from "../../src/sandboxes/size.ts";
import type { Clock } from "../../src/system/clock.ts";
import { silentLog } from "../../src/system/log.ts";
import { systemRandom } from "../../src/system/random.ts";
import { Signals } from "../../src/system/signals.ts";

const startMs = Date.parse("2026-12-01T10:00:00Z");

/** Stands still until it is told; a wait ends once the time has come. */
export class StillClock implements Clock {
  #ms = 0;
  #sleepers: { atMs: number; wake: () => void }[] = [];
  now = (): number => startMs + this.#ms;
  monotonic = (): number => this.#ms;
  sleep = (ms: number): Promise<void> =>
    new Promise((wake) => void this.#sleepers.push({ atMs: this.#ms + ms, wake }));

  pass(ms: number): void {
    this.#ms += ms;
    const due = this.#sleepers.filter(({ atMs }) => atMs <= this.#ms);
    this.#sleepers = this.#sleepers.filter(({ atMs }) => atMs > this.#ms);
    for (const { wake } of due) wake();
  }
}

export const base: Base = {
  digest: `sha256:${"ab".repeat(32)}`,
  name: "debian-13-slim",
  path: "/images/debian-13-slim.img",
  sizeBytes: 1 * GiB,
  builtAtMs: startMs - 1_000,
};

const unused = (): never => {
  throw new Fault("unavailable", "nothing is behind this API");
};
const nothing = new Proxy({}, { get: () => unused });

export interface TestHost {
  ports: ApiPorts;
  app: Api;
  clock: StillClock;
  bugs: unknown[];
  key: (scope: Scope) => Promise<string>;
  /** The state database as it is now, as a restart would find it. */
  bytes: () => Uint8Array;
}

/** @param state the database another host of this kind had. */
export async function testHost(state?: Uint8Array): Promise<TestHost> {
  const clock = new StillClock();
  const signals = new Signals(clock);
  const committed = (topics: Iterable<string>): void => signals.notify(topics);
  const gather = async (): Promise<void> => {};
  const sqlite = await openBytes(state);
  const db = openState({ sqlite, committed, gather });
  const output = openOutput({ sqlite: await openBytes(undefined), committed, gather });
  const bugs: unknown[] = [];
  const outside = { vmm: nothing, disks: nothing, guests: nothing } as Pick<
    ApiPorts,
    "vmm" | "disks" | "guests"
  >;
  const ports: ApiPorts = {
    ...outside,
    db,
    output,
    clock,
    signals,
    log: silentLog,
    random: systemRandom,
    driver: {
      driver: "simulated",
      acceleration: "emulated",
      why: "no VM is behind this API",
      timeScale: 1,
      bootSlots: 1,
      overheadBytes: 0,
    },
    images: { bases: async () => [base], bootFiles: async () => unused() },
    limits: {
      sandboxesTotal: 100,
      sandboxesRunning: 100,
      vcpusRunning: 100,
      memoryRunningBytes: 100 * GiB,
      diskTotalBytes: 10_000 * GiB,
      machineMemoryBytes: 100 * GiB,
    },
    sizes: defaultSizes,
    recordsKeptMs: 30 * dayMs,
    sightings: new Sightings(clock),
    runEnded: async () => {},
    host: await openHost(db, clock, systemRandom),
    build: { version: "0.0.0-test", commit: "none" },
    defaultBase: undefined,
    onBug: (bug) => void bugs.push(bug),
  };
  const key = async (scope: Scope): Promise<string> =>
    (await db.write((tx) => makeApiKey(tx, ports, { name: `a ${scope} key`, scope }))).secret;
  return { ports, app: createApi(ports), clock, bugs, key, bytes: () => sqlite.serialize() };
}

export interface Ask {
  secret?: string | undefined;
  /** Sent as JSON unless it is text already. */
  body?: unknown;
  idempotencyKey?: string | undefined;
  headers?: Record<string, string>;
}

export interface Reply {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  body: any;
}

/** One request; `target` is "METHOD /path". */
export async function ask(app: Api, target: string, wanted: Ask = {}): Promise<Reply> {
  const [method = "GET", path = "/"] = target.split(" ");
  const headers = new Headers(wanted.headers);
  if (wanted.secret) headers.set("authorization", `Bearer ${wanted.secret}`);
  if (wanted.idempotencyKey) headers.set("idempotency-key", wanted.idempotencyKey);
  if (wanted.body !== undefined && !headers.has("content-type"))
    headers.set("content-type", "application/json");
  const text = typeof wanted.body === "string" ? wanted.body : JSON.stringify(wanted.body);
  const answer = await app.request(path, {
    method,
    headers,
    ...(wanted.body !== undefined && { body: text }),
  });
  const received = await answer.text();
  const isJson = (answer.headers.get("content-type") ?? "").includes("json");
  return {
    status: answer.status,
    headers: answer.headers,
    body: isJson && received ? JSON.parse(received) : received,
  };
}
