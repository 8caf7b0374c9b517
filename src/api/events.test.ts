import { expect, test } from "bun:test";
import { ask, testHost } from "../../test/api/host.ts";
import { eventsUntil } from "../../test/api/sse.ts";
import { dropEventsBefore } from "../events/store.ts";
import { moveSandbox } from "../sandboxes/store.ts";

async function host() {
  const made = await testHost();
  const secret = await made.key("operate");
  const send = (target: string, body?: unknown) =>
    ask(made.app, target, { secret, body, idempotencyKey: crypto.randomUUID() });
  const create = async (name: string): Promise<string> =>
    (await send("POST /v1/sandboxes", { name })).body.id as string;
  const start = (id: string) =>
    made.ports.db.write((tx) =>
      moveSandbox(tx, { id, event: "start", reason: "start_requested", nowMs: made.clock.now() }),
    );
  const follow = (query = "", headers: Record<string, string> = {}) =>
    made.app.request(`/v1/events${query}`, {
      headers: { authorization: `Bearer ${secret}`, accept: "text/event-stream", ...headers },
    });
  const get = (query = "") => ask(made.app, `GET /v1/events${query}`, { secret });
  return { ...made, send, create, start, follow, get };
}

test("what happened is told once, in its order, and gone on with behind the last", async () => {
  const { create, start, send, get } = await host();
  const [one, two] = [await create("one"), await create("two")];
  await start(one);
  const { body: first } = await get("?limit=2");
  expect(first.data).toMatchObject([
    { type: "sandbox.created", sandbox_id: one, data: { name: "one" } },
    { type: "sandbox.created", sandbox_id: two },
  ]);
  const { body: rest } = await get(`?after=${first.next_after}`);
  const starting = { phase: "starting", reason: "start_requested", run: 0 };
  expect(rest).toMatchObject({
    data: [{ type: "sandbox.phase", sandbox_id: one, data: starting }],
    missed: false,
  });
  const { body: none } = await get(`?after=${rest.next_after}`);
  expect(none).toMatchObject({ data: [], next_after: rest.next_after });
  await send(`PATCH /v1/sandboxes/two`, { labels: { team: "a" } });
  const { body: of } = await get("?sandbox=two&types=sandbox.changed,sandbox.phase");
  expect(of.data).toMatchObject([{ type: "sandbox.changed", data: { labels: { team: "a" } } }]);
});

test("a refused change leaves no event", async () => {
  const { create, send, get } = await host();
  await create("one");
  expect((await send("POST /v1/sandboxes", { name: "one" })).status).toBe(409);
  expect((await get()).body.data).toHaveLength(1);
});

test("who waits hears of an event when it comes", async () => {
  const { create, get } = await host();
  const waiting = get("?after=latest&wait=25");
  await Bun.sleep(5);
  const id = await create("one");
  expect((await waiting).body.data).toMatchObject([{ sandbox_id: id }]);
});

test("a follower hears what comes, and resumes with the last event's id", async () => {
  const { create, start, follow } = await host();
  await create("before");
  const following = follow();
  const heard = eventsUntil(await following, "sandbox.created");
  await Bun.sleep(5);
  const id = await create("one");
  const first = (await heard).at(-1);
  expect(JSON.parse(first?.data ?? "")).toMatchObject({ sandbox_id: id });
  await start(id);
  const resumed = await follow("", { "last-event-id": first?.id ?? "" });
  const [, missed] = await eventsUntil(resumed, "sandbox.phase");
  expect(missed).toMatchObject({ event: "sandbox.phase" });
});

test("who asks for what is not kept any more is told so", async () => {
  const { create, get, follow, ports, clock } = await host();
  for (const name of ["one", "two", "three"]) await create(name);
  const [{ id }] = (await get()).body.data;
  clock.pass(1);
  await create("four");
  await ports.db.write((tx) => dropEventsBefore(tx, clock.now(), 100));
  expect((await get(`?after=${id}`)).body).toMatchObject({ missed: true, data: [{}] });
  const events = await eventsUntil(await follow(`?after=${id}`), "sandbox.created");
  expect(events.map(({ event }) => event)).toEqual([undefined, "missed", "sandbox.created"]);
  expect((await get("?after=cmd_1")).body).toMatchObject({ code: "invalid_cursor" });
});
