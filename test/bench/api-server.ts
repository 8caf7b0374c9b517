/**
 * A server for the benchmark, in a process of its own: `ours DIR` is the whole API on files, with
 * nothing behind it; `bare DIR` is Hono with the same writes to the same tables and nothing else.
 * Prints {"url", "secret", "sandboxes"} and serves until it is killed.
 */
import { join } from "node:path";
import { Hono } from "hono";
import { makeApiKey } from "../../src/api/api-keys.ts";
import { createApi } from "../../src/api/app.ts";
import type { ApiPorts } from "../../src/api/ports.ts";
import { gatherTurns, openOutput, openState } from "../../src/db/open.ts";
import { openFile, type Sqlite } from "../../src/db/sqlite.ts";
import { openHost } from "../../src/hosts/open.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { Signals } from "../../src/system/signals.ts";
import { base, testHost } from "../api/host.ts";

/** One takes 256 commands that have not ended. */
const sandboxes = 400;
const [kind, directory = ""] = process.argv.slice(2);

const signals = new Signals(systemClock);
const opening = {
  committed: (topics: Iterable<string>): void => signals.notify(topics),
  gather: gatherTurns,
};
const sqlite = await openFile(join(directory, "holdfast.db"));
const db = openState({ sqlite, ...opening });
const output = openOutput({ sqlite: await openFile(join(directory, "output.db")), ...opening });
const host = await openHost(db, systemClock, systemRandom);
const limits = { sandboxesTotal: 1e6, sandboxesRunning: 1e6, vcpusRunning: 1e9 };
const bytes = { memoryRunningBytes: 1e18, diskTotalBytes: 1e18, machineMemoryBytes: 1e18 };
const ports: ApiPorts = {
  ...(await testHost()).ports,
  ...{ db, output, signals, host, clock: systemClock, limits: { ...limits, ...bytes } },
  images: { bases: async () => [base], bootFiles: async () => Promise.reject(new Error("none")) },
};
const wanted = { name: "bench", scope: "admin" } as const;
const { secret } = await db.write((tx) => makeApiKey(tx, ports, wanted));
const app = kind === "ours" ? createApi(ports) : bareApp(sqlite);
const ids = kind === "ours" ? await makeSandboxes() : bareIds();
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => app.fetch(request),
});
console.log(JSON.stringify({ url: server.url.origin, secret, sandboxes: ids }));

async function makeSandboxes(): Promise<string[]> {
  const made: string[] = [];
  for (let at = 0; at < sandboxes; at++) {
    const headers = {
      authorization: `Bearer ${secret}`,
      "idempotency-key": `bench-${at}`,
      "content-type": "application/json",
    };
    const body = JSON.stringify({ name: `bench-${at}`, size: "tiny" });
    const answer = await app.request("/v1/sandboxes", { method: "POST", headers, body });
    made.push(((await answer.json()) as { id: string }).id);
  }
  return made;
}

function bareIds(): string[] {
  return Array.from({ length: sandboxes }, (_, at) => `sb_${String(at).padStart(26, "0")}`);
}

/** The least that reads a row, and that makes a command and its key durable before it answers. */
function bareApp(database: Sqlite): Hono {
  const addSandbox = database.prepare(`
    insert into sandboxes (id, name, size, vcpus, memory_bytes, disk_bytes, base_digest, base_name,
      base_built_at_ms, labels, machine_id, phase, phase_reason, phase_at_ms, created_at_ms)
    values (?, ?, 'tiny', 1, 1, 1, 'x', 'x', 1, '{}', 'x', 'starting', 'start_requested', 1, 1)`);
  for (const id of bareIds()) addSandbox.run([id, id]);
  const read = database.prepare("select * from sandboxes where id = ?");
  const addCommand = database.prepare(`
    insert into commands (id, sandbox_id, argv, env, user, stdin, state, state_reason, accepted_by,
      accepted_at_ms) values (?, ?, ?, '{}', 'agent', 0, 'queued', 'accepted', 'bench', ?)`);
  const addKey = database.prepare(`
    insert into idempotency_keys (api_key_id, key, request_sha256, status, body, command_id,
      created_at_ms) values ('bench', ?, ?, 201, ?, ?, ?)`);
  let waiting: (() => () => void)[] = [];
  const flush = (): void => {
    const jobs = waiting;
    waiting = [];
    const tell: (() => void)[] = [];
    database.transaction(() => {
      for (const job of jobs) tell.push(job());
    })();
    for (const each of tell) each();
  };
  const bare = new Hono();
  bare.get("/v1/sandboxes/:id", (c) => c.json(read.all([c.req.param("id")])[0] as object));
  bare.post("/v1/sandboxes/:id/commands", async (c) => {
    const { argv } = (await c.req.json()) as { argv: string[] };
    const key = c.req.header("idempotency-key") ?? "";
    const body = await new Promise<object>((resolve) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push(() => {
        const nowMs = Date.now();
        const id = `cmd_${key}`;
        const made = {
          id,
          sandbox_id: c.req.param("id"),
          argv,
          state: "queued",
          accepted_at: nowMs,
        };
        addCommand.run([id, c.req.param("id"), JSON.stringify(argv), nowMs]);
        addKey.run([key, new Uint8Array(32), JSON.stringify(made), id, nowMs]);
        return () => resolve(made);
      });
    });
    return c.json(body, 201);
  });
  return bare;
}
