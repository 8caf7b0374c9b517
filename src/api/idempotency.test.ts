import { expect, test } from "bun:test";
import { ask, base, testHost } from "../../test/api/host.ts";
import { dayMs } from "../core/units.ts";
import { dropAnswersBefore, keepAnswer } from "./store.ts";

test("fifty equal requests at once make one sandbox", async () => {
  const { app, key } = await testHost();
  const secret = await key("operate");
  const one = () =>
    ask(app, "POST /v1/sandboxes", { secret, body: { name: "web" }, idempotencyKey: "one" });
  const replies = await Promise.all(Array.from({ length: 50 }, one));
  expect(new Set(replies.map(({ body }) => body.id)).size).toBe(1);
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
  const replayed = replies.filter(({ headers }) => headers.get("idempotent-replayed") === "true");
  expect(replayed.length).toBe(49);
  expect((await ask(app, "GET /v1/sandboxes", { secret })).body.data.length).toBe(1);
});

test("a retry after a restart is answered as before, with its key's order of fields irrelevant", async () => {
  const before = await testHost();
  const secret = await before.key("operate");
  const first = { secret, body: { name: "web", size: "tiny" }, idempotencyKey: "one" };
  const made = await ask(before.app, "POST /v1/sandboxes", first);
  const after = await testHost(before.bytes());
  const second = { ...first, body: { size: "tiny", name: "web" } };
  const again = await ask(after.app, "POST /v1/sandboxes", second);
  expect(again.body).toEqual(made.body);
  expect(again.headers.get("location")).toBe(made.headers.get("location"));
  expect(again.headers.get("idempotent-replayed")).toBe("true");
});

test("a key is not taken for another body, path, query or method", async () => {
  const { app, key } = await testHost();
  const secret = await key("operate");
  const send = (target: string, body: unknown) =>
    ask(app, target, { secret, body, idempotencyKey: "one" });
  await send("POST /v1/sandboxes", { name: "web" });
  const others: [string, unknown][] = [
    ["POST /v1/sandboxes", { name: "other" }],
    ["POST /v1/sandboxes/web/start", undefined],
    ["PATCH /v1/sandboxes/web", { name: "web" }],
    ["DELETE /v1/sandboxes/web", undefined],
  ];
  for (const [target, body] of others) {
    const reply = await send(target, body);
    expect([target, reply.status, reply.body.code]).toEqual([target, 409, "idempotency_conflict"]);
  }
});

test("keys of different API keys do not meet", async () => {
  const { app, key } = await testHost();
  const wanted = { body: {}, idempotencyKey: "one" };
  const a = await ask(app, "POST /v1/sandboxes", { ...wanted, secret: await key("operate") });
  const b = await ask(app, "POST /v1/sandboxes", { ...wanted, secret: await key("operate") });
  expect([a.status, b.status]).toEqual([201, 201]);
  expect(a.body.id).not.toBe(b.body.id);
});

test("a refused change leaves its key free", async () => {
  const { app, key } = await testHost();
  const secret = await key("operate");
  const send = (target: string, idempotencyKey: string) =>
    ask(app, target, { secret, idempotencyKey });
  expect((await send("POST /v1/sandboxes/web/start", "one")).status).toBe(404);
  await ask(app, "POST /v1/sandboxes", { secret, body: { name: "web" }, idempotencyKey: "two" });
  expect((await send("POST /v1/sandboxes/web/start", "one")).status).toBe(202);
});

test("keys without a use, too long or with spaces are refused before anything is done", async () => {
  const { app, key } = await testHost();
  const secret = await key("operate");
  const codes = [];
  for (const idempotencyKey of [undefined, "a b", "x".repeat(256), "ä"]) {
    const reply = await ask(app, "POST /v1/sandboxes", { secret, body: {}, idempotencyKey });
    codes.push([reply.status, reply.body.code]);
  }
  const invalid = [400, "idempotency_key_invalid"];
  expect(codes).toEqual([[400, "idempotency_key_missing"], invalid, invalid, invalid]);
});

test("a change that a stalled disk holds up is told, and its key finds out later", async () => {
  const { app, key, clock, ports } = await testHost();
  const secret = await key("operate");
  let goOn = (): void => {};
  const stallThenList = async () => {
    void ports.db.write(() => new Promise<void>((resolve) => (goOn = resolve)));
    return [base];
  };
  Object.assign(ports, { images: { bases: stallThenList } });
  const wanted = { secret, body: { name: "web" }, idempotencyKey: "one" };
  const first = ask(app, "POST /v1/sandboxes", wanted);
  await Bun.sleep(5);
  clock.pass(5_000);
  const held = await first;
  expect([held.status, held.body.code]).toEqual([409, "idempotency_in_progress"]);
  expect(held.headers.get("retry-after")).toBe("1");
  goOn();
  const again = await ask(app, "POST /v1/sandboxes", wanted);
  expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
});

test("old answers are forgotten, a command's never", async () => {
  const { app, key, clock, ports } = await testHost();
  const secret = await key("operate");
  const sandbox = { secret, body: { name: "web" }, idempotencyKey: "sandbox" };
  const command = { secret, body: { argv: ["true"] }, idempotencyKey: "command" };
  await ask(app, "POST /v1/sandboxes", sandbox);
  const sent = await ask(app, "POST /v1/sandboxes/web/commands", command);
  clock.pass(30 * dayMs);
  await ports.db.write((tx) => dropAnswersBefore(tx, ports.clock.now() - dayMs));
  expect((await ask(app, "POST /v1/sandboxes", sandbox)).body.code).toBe("name_taken");
  expect((await ask(app, "POST /v1/sandboxes/web/commands", command)).body).toEqual(sent.body);
});

test("many old answers are forgotten in steps", async () => {
  const { ports } = await testHost();
  const rest = { api_key_id: "key_1", request_sha256: new Uint8Array(32), status: 201, body: "{}" };
  await ports.db.write(async (tx) => {
    for (let count = 0; count < 1_100; count++)
      await keepAnswer(tx, { ...rest, key: `${count}`, command_id: null, created_at_ms: count });
  });
  const steps: number[] = [];
  const step = () => ports.db.write((tx) => dropAnswersBefore(tx, 1_050));
  for (let dropped = await step(); dropped > 0; dropped = await step()) steps.push(dropped);
  expect(steps).toEqual([500, 500, 50]);
  const left = await ports.db.read.selectFrom("idempotency_keys").select("key").execute();
  expect(left.length).toBe(50);
});
