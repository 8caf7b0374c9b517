import { expect, test } from "bun:test";
import { ask, testHost } from "../../test/api/host.ts";
import { type ApiDocument, operationsOf } from "./docs.ts";

const described = async () => {
  const host = await testHost();
  const { body } = await ask(host.app, "GET /openapi.json");
  return { ...host, operations: operationsOf(body as ApiDocument) };
};

const changes = ["post", "put", "patch", "delete"];
const pathOf = (path: string): string => path.replaceAll(/\{[^}]+\}/g, "x");

test("every route under /v1 needs an API key, and says so", async () => {
  const { app, operations } = await described();
  expect(operations.length).toBeGreaterThan(15);
  for (const { path, method, operation } of operations) {
    const reply = await ask(app, `${method.toUpperCase()} ${pathOf(path)}`);
    expect([path, method, reply.status]).toEqual([path, method, 401]);
    expect(operation.security).toEqual([{ apiKey: [] }]);
    expect(operation.responses["default"]).toBeDefined();
  }
});

test("every change but stdin needs an idempotency key, and says so", async () => {
  const { app, key, operations } = await described();
  const secret = await key("admin");
  for (const { path, method, operation } of operations) {
    const names = (operation.parameters ?? []).map(({ name }) => name.toLowerCase());
    const keyed = changes.includes(method) && !path.endsWith("/stdin");
    expect([path, method, names.includes("idempotency-key")]).toEqual([path, method, keyed]);
    if (!keyed) continue;
    const reply = await ask(app, `${method.toUpperCase()} ${pathOf(path)}`, { secret });
    expect([path, reply.status, reply.body.code]).toEqual([path, 400, "idempotency_key_missing"]);
  }
});

test("every change refuses a key that may only read", async () => {
  const { app, key, operations } = await described();
  const secret = await key("read");
  for (const { path, method } of operations.filter((each) => changes.includes(each.method))) {
    const target = `${method.toUpperCase()} ${pathOf(path)}`;
    const reply = await ask(app, target, { secret, idempotencyKey: "k" });
    expect([path, reply.status]).toEqual([path, 403]);
  }
});

test("health, documents and a reader's page need no key", async () => {
  const { app } = await testHost();
  expect((await ask(app, "GET /healthz")).status).toBe(200);
  expect((await ask(app, "GET /docs")).body).toContain("/v1/sandboxes");
  expect((await ask(app, "GET /llms.txt")).body).toContain("POST /v1/sandboxes");
  const { checks } = (await ask(app, "GET /readyz")).body;
  const names = checks.map(({ name }: { name: string }) => name);
  expect(names).toEqual(["hypervisor", "database", "base", "boot_files"]);
});

test("a mistake of ours is answered, told to whoever runs the process, and says nothing else", async () => {
  const { app, ports, bugs, key } = await testHost();
  const secret = await key("read");
  Object.assign(ports, { images: { bases: () => Promise.reject(new Error("secret inside")) } });
  const reply = await ask(app, "GET /v1/bases", { secret });
  expect([reply.status, reply.body.code]).toEqual([500, "internal_error"]);
  expect(JSON.stringify(reply.body)).not.toContain("secret inside");
  expect(bugs.length).toBe(1);
});
