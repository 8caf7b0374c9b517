import { expect, test } from "bun:test";
import { ask, testHost } from "../../test/api/host.ts";

async function hostWithBox() {
  const host = await testHost();
  const secret = await host.key("admin");
  const send = (target: string, body?: unknown, headers?: Record<string, string>) =>
    ask(host.app, target, {
      secret,
      body,
      idempotencyKey: crypto.randomUUID(),
      ...(headers && { headers }),
    });
  await send("POST /v1/sandboxes", { name: "web" });
  return { ...host, send };
}

const sandboxes = "POST /v1/sandboxes";
const commands = "POST /v1/sandboxes/web/commands";
const entries = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`V${at}`, "x"]));

const refused: [string, string, unknown, number, string][] = [
  ["a name with ..", sandboxes, { name: "../../etc" }, 422, "invalid_request"],
  ["a name with a newline", sandboxes, { name: "a\nb" }, 422, "invalid_request"],
  ["a name with a newline at the end", sandboxes, { name: "ab\n" }, 422, "invalid_request"],
  ["a name that begins with a dash", sandboxes, { name: "-rf" }, 422, "invalid_request"],
  ["a name of 64", sandboxes, { name: "a".repeat(64) }, 422, "invalid_request"],
  ["an empty name", sandboxes, { name: "" }, 422, "invalid_request"],
  ["a name that is a number", sandboxes, { name: 7 }, 422, "invalid_request"],
  ["a name in capitals", sandboxes, { name: "Web" }, 422, "invalid_request"],
  ["a taken name", sandboxes, { name: "web" }, 409, "name_taken"],
  ["an unknown size", sandboxes, { size: "huge" }, 422, "unknown_size"],
  ["an unknown base", sandboxes, { base: "plan9" }, 422, "unknown_base"],
  ["labels that are a list", sandboxes, { labels: [] }, 422, "invalid_request"],
  ["a label that is an object", sandboxes, { labels: { a: {} } }, 422, "invalid_request"],
  ["33 labels", sandboxes, { labels: entries(33) }, 422, "invalid_request"],
  ["__proto__", sandboxes, '{"labels":{"__proto__":"x"}}', 422, "invalid_request"],
  ["a body that is a list", sandboxes, [], 422, "invalid_request"],
  ["a body that is null", sandboxes, "null", 422, "invalid_request"],
  ["broken JSON", sandboxes, '{"name":', 400, "malformed_json"],
  ["JSON nested deep", sandboxes, "[".repeat(100_000), 400, "malformed_json"],
  [
    "objects nested deep",
    sandboxes,
    `${'{"a":'.repeat(99)}1${"}".repeat(99)}`,
    422,
    "invalid_request",
  ],
  ["NUL in a label", sandboxes, '{"labels":{"a":"\\u0000"}}', 422, "invalid_request"],
  ["half a surrogate pair", sandboxes, '{"labels":{"a":"\\ud800"}}', 422, "invalid_request"],
  ["a body over 1 MiB", sandboxes, { name: "x".repeat(1_100_000) }, 413, "body_too_large"],
  ["storage classes", sandboxes, { storage_class: "fast" }, 422, "unsupported_capability"],
  ["neither argv nor command", commands, {}, 422, "invalid_request"],
  ["both argv and command", commands, { argv: ["a"], command: "a" }, 422, "invalid_request"],
  ["argv that is text", commands, { argv: "ls" }, 422, "invalid_request"],
  ["an empty argv", commands, { argv: [] }, 422, "invalid_request"],
  ["an empty program", commands, { argv: [""] }, 422, "invalid_request"],
  ["NUL in an argument", commands, '{"argv":["a\\u0000b"]}', 422, "invalid_request"],
  ["an argument of 1 MB", commands, { argv: ["x".repeat(1_000_000)] }, 422, "arguments_too_long"],
  ["5,000 arguments", commands, { argv: Array(5_000).fill("x") }, 422, "invalid_request"],
  ["10,000 variables", commands, { argv: ["a"], env: entries(10_000) }, 422, "invalid_request"],
  ["a variable with =", commands, { argv: ["a"], env: { "A=B": "" } }, 422, "invalid_request"],
  ["a relative cwd", commands, { argv: ["a"], cwd: "tmp" }, 422, "invalid_request"],
  ["a user with a colon", commands, { argv: ["a"], user: "root:x" }, 422, "invalid_request"],
  ["no time at all", commands, { argv: ["a"], timeout_seconds: 0 }, 422, "invalid_request"],
  ["a time that is text", commands, { argv: ["a"], timeout_seconds: "5" }, 422, "invalid_request"],
  ["stdin that is text", commands, { argv: ["a"], stdin: "yes" }, 422, "invalid_request"],
  ["a terminal", commands, { argv: ["a"], pty: {} }, 422, "unsupported_capability"],
  ["a body for start", "POST /v1/sandboxes/web/start", { a: 1 }, 422, "invalid_request"],
  ["an unknown sandbox", "POST /v1/sandboxes/other/start", undefined, 404, "sandbox_not_found"],
  ["an unknown command", "POST /v1/commands/cmd_1/kill", {}, 404, "command_not_found"],
  ["an unknown route", "POST /v1/nothing", {}, 404, "route_not_found"],
  ["a wrong method", "PUT /v1/sandboxes/web", {}, 405, "method_not_allowed"],
  ["an unknown query name", "GET /v1/sandboxes?colour=red", undefined, 422, "invalid_request"],
  ["a limit of 0", "GET /v1/sandboxes?limit=0", undefined, 422, "invalid_request"],
  ["a limit of 101", "GET /v1/sandboxes?limit=101", undefined, 422, "invalid_request"],
  ["a limit of 1e1", "GET /v1/sandboxes?limit=1e1", undefined, 422, "invalid_request"],
  ["a limit given twice", "GET /v1/sandboxes?limit=1&limit=2", undefined, 422, "invalid_request"],
  ["an unknown phase", "GET /v1/sandboxes?phase=happy", undefined, 422, "invalid_request"],
  ["a made-up cursor", "GET /v1/sandboxes?cursor=abc", undefined, 400, "invalid_cursor"],
  ["a wait of 26 s", "GET /v1/sandboxes/web?wait=26", undefined, 422, "invalid_request"],
];

test.each(refused)("%s is refused with a problem", async (_, target, body, status, code) => {
  const { send, bugs } = await hostWithBox();
  const reply = await send(target, body);
  expect([reply.status, reply.body.code]).toEqual([status, code]);
  expect(reply.headers.get("content-type")).toBe("application/problem+json");
  expect(reply.body.request_id).toBe(reply.headers.get("x-request-id"));
  expect(bugs).toEqual([]);
});

test("an unknown field is answered with the nearest name", async () => {
  const { send } = await hostWithBox();
  const { body } = await send(commands, { argv: ["a"], envs: {} });
  expect(body.errors).toEqual([
    { pointer: "/envs", detail: '"envs" is not known; did you mean `env`?' },
  ]);
});

test("another media type than JSON is refused, and so is JSON that is not UTF-8", async () => {
  const { send, app, key } = await hostWithBox();
  const form = { "content-type": "application/x-www-form-urlencoded" };
  expect((await send(sandboxes, "name=x", form)).status).toBe(415);
  const headers = {
    "content-type": "application/json",
    authorization: `Bearer ${await key("operate")}`,
    "idempotency-key": "latin",
  };
  const body = new Uint8Array([0x7b, 0x22, 0xe4, 0x22, 0x3a, 0x31, 0x7d]);
  const reply = await app.request("/v1/sandboxes", { method: "POST", headers, body });
  expect(reply.status).toBe(400);
});

test("405 names the methods that are taken", async () => {
  const { send } = await hostWithBox();
  const reply = await send("PUT /v1/sandboxes/web");
  expect(reply.headers.get("allow")).toBe("DELETE, GET, HEAD, PATCH");
});
