import { expect, test } from "bun:test";
import { ask, base, testHost } from "../../test/api/host.ts";
import { moveSandbox } from "../sandboxes/store.ts";

async function host() {
  const made = await testHost();
  const secret = await made.key("operate");
  const send = (target: string, body?: unknown, idempotencyKey: string = crypto.randomUUID()) =>
    ask(made.app, target, { secret, body, idempotencyKey });
  return { ...made, send, get: (path: string) => ask(made.app, `GET ${path}`, { secret }) };
}

test("a new sandbox is stopped, has the default size and base, and is found by id and name", async () => {
  const { send, get } = await host();
  const made = await send("POST /v1/sandboxes", { name: "web", labels: { team: "a" } });
  expect(made.headers.get("location")).toBe(`/v1/sandboxes/${made.body.id}`);
  expect(made.body).toMatchObject({
    name: "web",
    phase: "stopped",
    phase_reason: "created",
    size: "small",
    base: { digest: base.digest, name: base.name },
    labels: { team: "a" },
    run: 0,
    started_from: null,
    last_stop: null,
    saving: { health: "off", last_completed: null },
    commands_live: 0,
    deleted_at: null,
  });
  expect((await get("/v1/sandboxes/web")).body).toEqual(made.body);
  expect((await get(`/v1/sandboxes/${made.body.id}`)).body).toEqual(made.body);
});

test("pages hold every sandbox once, newest first, and filters bind their cursor", async () => {
  const { send, get, clock } = await host();
  const ids: string[] = [];
  for (let at = 0; at < 7; at++) {
    clock.pass(1);
    const body = { name: `box-${at}`, labels: { half: String(at % 2) } };
    ids.unshift((await send("POST /v1/sandboxes", body)).body.id);
  }
  const seen: string[] = [];
  for (let query = "?limit=3"; query !== ""; ) {
    const { data, next_cursor } = (await get(`/v1/sandboxes${query}`)).body;
    seen.push(...data.map(({ id }: { id: string }) => id));
    query = next_cursor === null ? "" : `?limit=3&cursor=${next_cursor}`;
  }
  expect(seen).toEqual(ids);
  const even = (await get("/v1/sandboxes?label.half=0&limit=2")).body;
  expect(even.data.map(({ name }: { name: string }) => name)).toEqual(["box-6", "box-4"]);
  const wrong = await get(`/v1/sandboxes?label.half=1&cursor=${even.next_cursor}`);
  expect([wrong.status, wrong.body.code]).toEqual([400, "invalid_cursor"]);
});

test("a start is under way once, however often it is asked for", async () => {
  const { send, get } = await host();
  await send("POST /v1/sandboxes", { name: "web" });
  const first = await send("POST /v1/sandboxes/web/start");
  const second = await send("POST /v1/sandboxes/web/start");
  expect([first.status, second.status]).toEqual([202, 202]);
  expect(second.body.operation.id).toBe(first.body.operation.id);
  const operation = await get(`/v1/operations/${first.body.operation.id}`);
  expect(operation.body).toMatchObject({ kind: "start", state: "running", finished_at: null });
  expect(first.body.sandbox.started_from).toMatchObject({ kind: "base", id: base.digest });
});

test("a stop of a stopped sandbox has nothing to do", async () => {
  const { send } = await host();
  await send("POST /v1/sandboxes", { name: "web" });
  const reply = await send("POST /v1/sandboxes/web/stop");
  expect([reply.status, reply.body.operation]).toEqual([200, null]);
});

test("a start while it is being deleted is a conflict that names the phase", async () => {
  const { send } = await host();
  await send("POST /v1/sandboxes", { name: "web" });
  const deleted = await send("DELETE /v1/sandboxes/web");
  expect([deleted.status, deleted.body.sandbox.phase]).toEqual([202, "deleting"]);
  const reply = await send(`POST /v1/sandboxes/${deleted.body.sandbox.id}/start`);
  expect([reply.status, reply.body.code]).toEqual([409, "sandbox_deleting"]);
  expect(reply.body.details).toEqual({ phase: "deleting" });
});

test("deleting what is deleted is not found, and its name is free", async () => {
  const { send, ports, get } = await host();
  const { id } = (await send("POST /v1/sandboxes", { name: "web" })).body;
  const first = await send(`DELETE /v1/sandboxes/${id}`, undefined, "once");
  const nowMs = ports.clock.now();
  await ports.db.write((tx) =>
    moveSandbox(tx, {
      id,
      event: "deleted",
      reason: "deleted",
      nowMs,
      changes: { deleted_at_ms: nowMs },
    }),
  );
  expect((await send(`DELETE /v1/sandboxes/${id}`)).status).toBe(404);
  const replayed = await send(`DELETE /v1/sandboxes/${id}`, undefined, "once");
  expect(replayed.body).toEqual(first.body);
  expect((await get(`/v1/sandboxes/${id}`)).body.phase).toBe("deleted");
  expect((await send("POST /v1/sandboxes", { name: "web" })).status).toBe(201);
});

test("a sandbox is renamed and labelled, but not to a taken name", async () => {
  const { send } = await host();
  await send("POST /v1/sandboxes", { name: "web" });
  await send("POST /v1/sandboxes", { name: "db" });
  const changed = await send("PATCH /v1/sandboxes/web", { name: "www", labels: { a: "b" } });
  expect(changed.body).toMatchObject({ name: "www", labels: { a: "b" } });
  expect((await send("PATCH /v1/sandboxes/www", { name: "db" })).body.code).toBe("name_taken");
  expect((await send("PATCH /v1/sandboxes/www", { name: "www" })).status).toBe(200);
});

test("who waits for a phase is answered when it comes", async () => {
  const { send, get } = await host();
  await send("POST /v1/sandboxes", { name: "web" });
  const waiting = get("/v1/sandboxes/web?wait_for=starting&wait=25");
  await Bun.sleep(5);
  await send("POST /v1/sandboxes/web/start");
  expect((await waiting).body.phase).toBe("starting");
});

test("what this deployment does not offer is refused by name, on every route of it", async () => {
  const { send } = await host();
  await send("POST /v1/sandboxes", { name: "web" });
  for (const path of ["sandboxes/web/snapshots", "sandboxes/web/saves", "connections", "hosts"]) {
    const reply = await send(`POST /v1/${path}`, {});
    expect([path, reply.status, reply.body.code]).toEqual([path, 422, "unsupported_capability"]);
    expect(reply.body.details.capability).toBeString();
  }
});
