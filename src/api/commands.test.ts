import { expect, test } from "bun:test";
import { ask, testHost } from "../../test/api/host.ts";
import { stdinPieceBytesMax } from "../commands/command.ts";

async function hostWithBox() {
  const host = await testHost();
  const secret = await host.key("operate");
  const send = (target: string, body?: unknown) =>
    ask(host.app, target, { secret, body, idempotencyKey: crypto.randomUUID() });
  await send("POST /v1/sandboxes", { name: "web" });
  const stdin = (id: string, query: string, body: string) =>
    ask(host.app, `POST /v1/commands/${id}/stdin?${query}`, {
      secret,
      body,
      headers: { "content-type": "application/octet-stream" },
    });
  const get = (path: string) => ask(host.app, `GET ${path}`, { secret });
  return { ...host, send, stdin, get };
}

const commands = "POST /v1/sandboxes/web/commands";

test("a command starts its sandbox, is queued, and tells all that was asked", async () => {
  const { send, get } = await hostWithBox();
  const wanted = {
    argv: ["make", "test"],
    cwd: "/srv",
    env: { CI: "1" },
    user: "root",
    timeout_seconds: 1.5,
    stdin: true,
  };
  const sent = await send(commands, wanted);
  expect(sent.status).toBe(201);
  expect(sent.headers.get("location")).toBe(`/v1/commands/${sent.body.id}`);
  expect(sent.body).toMatchObject({ ...wanted, state: "queued", is_final: false, exit_code: null });
  expect((await get(`/v1/commands/${sent.body.id}`)).body).toEqual(sent.body);
  const box = (await get("/v1/sandboxes/web")).body;
  expect([box.phase, box.commands_live]).toEqual(["starting", 1]);
});

test("a shell line is run by bash, as the agent's user", async () => {
  const { send } = await hostWithBox();
  const { body } = await send(commands, { command: "echo $HOME | tr a-z A-Z" });
  expect(body.argv).toEqual(["/bin/bash", "-lc", "echo $HOME | tr a-z A-Z"]);
  expect(body.user).toBe("agent");
});

test("commands are listed newest first, by state", async () => {
  const { send, get, clock } = await hostWithBox();
  const first = (await send(commands, { argv: ["one"] })).body.id;
  clock.pass(1);
  const second = (await send(commands, { argv: ["two"] })).body.id;
  await send(`POST /v1/commands/${first}/kill`, {});
  const idsOf = async (query: string) =>
    (await get(`/v1/sandboxes/web/commands${query}`)).body.data.map(({ id }: { id: string }) => id);
  expect(await idsOf("")).toEqual([second, first]);
  expect(await idsOf("?state=not_launched,exited")).toEqual([first]);
  const { next_cursor } = (await get("/v1/sandboxes/web/commands?limit=1")).body;
  expect(await idsOf(`?limit=1&cursor=${next_cursor}`)).toEqual([first]);
});

test("one killed before it was sent never runs, and who waits is told", async () => {
  const { send, get } = await hostWithBox();
  const { id } = (await send(commands, { argv: ["one"] })).body;
  const waiting = get(`/v1/commands/${id}?wait=25`);
  await Bun.sleep(5);
  const killed = await send(`POST /v1/commands/${id}/kill`, { signal: "SIGINT" });
  expect([killed.status, killed.body.kill.signal]).toEqual([202, "INT"]);
  expect((await waiting).body).toMatchObject({ state: "not_launched", is_final: true });
  const again = await send(`POST /v1/commands/${id}/kill`, {});
  expect([again.status, again.body.code]).toEqual([409, "command_ended"]);
  expect((await send(`POST /v1/commands/${id}/kill`, { signal: "NO" })).status).toBe(422);
});

test("stdin is taken in pieces, each once, and not after its end", async () => {
  const { send, stdin } = await hostWithBox();
  const { id } = (await send(commands, { argv: ["cat"], stdin: true })).body;
  expect((await stdin(id, "offset=0", "hello ")).body).toEqual({ offset: 6 });
  expect((await stdin(id, "offset=0", "hello ")).body).toEqual({ offset: 6 });
  expect((await stdin(id, "offset=3", "lo world")).body).toEqual({ offset: 11 });
  const hole = await stdin(id, "offset=99", "x");
  expect([hole.status, hole.body.code, hole.body.details]).toEqual([
    409,
    "stdin_gap",
    { offset: 11 },
  ]);
  expect((await stdin(id, "offset=11&eof=true", "")).body).toEqual({ offset: 11 });
  expect((await stdin(id, "offset=11", "more")).body.code).toBe("stdin_closed");
  const long = await stdin(id, "offset=11", "x".repeat(stdinPieceBytesMax + 1));
  expect([long.status, long.body.code]).toEqual([413, "body_too_large"]);
});

test("stdin of a command that did not ask for it is refused", async () => {
  const { send, stdin } = await hostWithBox();
  const { id } = (await send(commands, { argv: ["cat"] })).body;
  expect((await stdin(id, "offset=0", "x")).body.code).toBe("stdin_closed");
});
