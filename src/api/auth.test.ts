import { expect, test } from "bun:test";
import { ask, testHost } from "../../test/api/host.ts";

test("without an API key nothing under /v1 answers, not even that a path is missing", async () => {
  const { app } = await testHost();
  for (const path of ["/v1/sandboxes", "/v1/nothing", "/v1/commands/cmd_1/output", "/metrics"]) {
    const reply = await ask(app, `GET ${path}`);
    expect([reply.status, reply.body.code]).toEqual([401, "unauthenticated"]);
  }
});

test("a secret that is made up, cut or of another scheme is refused", async () => {
  const { app, key } = await testHost();
  const secret = await key("read");
  for (const header of [
    `Bearer ${secret.slice(0, -1)}`,
    `Bearer ${secret}x`,
    `Basic ${secret}`,
    "",
  ]) {
    const reply = await ask(app, "GET /v1/sandboxes", { headers: { authorization: header } });
    expect(reply.status).toBe(401);
  }
});

test("a read key looks, an operate key changes, an admin key makes keys", async () => {
  const { app, key } = await testHost();
  const statusOf = async (secret: string, target: string, body: unknown): Promise<number> =>
    (await ask(app, target, { secret, body, idempotencyKey: crypto.randomUUID() })).status;
  const made = { name: "ci", scope: "read" };
  const [read, operate, admin] = [await key("read"), await key("operate"), await key("admin")];
  expect(await statusOf(read, "GET /v1/sandboxes", undefined)).toBe(200);
  expect(await statusOf(read, "POST /v1/sandboxes", {})).toBe(403);
  expect(await statusOf(operate, "POST /v1/sandboxes", {})).toBe(201);
  expect(await statusOf(operate, "POST /v1/api-keys", made)).toBe(403);
  expect(await statusOf(operate, "GET /v1/api-keys", undefined)).toBe(403);
  expect(await statusOf(admin, "POST /v1/api-keys", made)).toBe(201);
});

test("an API key's secret is shown once and works until the key is revoked", async () => {
  const { app, key } = await testHost();
  const admin = { secret: await key("admin") };
  const wanted = { ...admin, body: { name: "ci", scope: "read" }, idempotencyKey: "make" };
  const made = await ask(app, "POST /v1/api-keys", wanted);
  const again = await ask(app, "POST /v1/api-keys", wanted);
  expect(again.body).toEqual({ ...made.body, secret: null });
  const { secret, id } = made.body;
  expect((await ask(app, "GET /v1/sandboxes", { secret })).status).toBe(200);
  const revoked = await ask(app, `DELETE /v1/api-keys/${id}`, { ...admin, idempotencyKey: "end" });
  expect(revoked.body.revoked_at).not.toBeNull();
  expect((await ask(app, "GET /v1/sandboxes", { secret })).status).toBe(401);
  const listed = await ask(app, "GET /v1/api-keys", admin);
  expect(JSON.stringify(listed.body)).not.toContain(secret);
});
