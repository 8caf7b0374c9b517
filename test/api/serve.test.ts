import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const directories: string[] = [];
const children: Bun.Subprocess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function freshData(): string {
  const data = mkdtempSync(join(tmpdir(), "holdfast-serve-"));
  directories.push(data);
  return data;
}

function start(data: string, ...argv: string[]) {
  const child = Bun.spawn(
    [process.execPath, "src/main.ts", "serve", "--data", data, "--port", "0", ...argv],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  children.push(child);
  return child;
}

/** Once it says that it serves. */
async function serving(data: string) {
  const child = start(data);
  let log = "";
  const reader = child.stdout.getReader();
  while (!log.includes('"serving"')) {
    const { done, value } = await reader.read();
    if (done) throw new Error(await new Response(child.stderr).text());
    log += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  const url = readFileSync(join(data, "serve.url"), "utf8").trim();
  return { child, url };
}

const keyOf = (data: string): string => readFileSync(join(data, "admin.key"), "utf8").trim();

const get = (url: string, key: string) =>
  fetch(`${url}/v1/sandboxes`, { headers: { authorization: `Bearer ${key}` } });

test("a fresh data directory gets an admin key that only its owner may read", async () => {
  const data = freshData();
  const { url } = await serving(data);
  expect(statSync(join(data, "admin.key")).mode & 0o777).toBe(0o600);
  expect((await get(url, keyOf(data))).status).toBe(200);
});

test("two processes never serve one data directory", async () => {
  const data = freshData();
  await serving(data);
  const second = start(data);
  expect(await second.exited).toBe(1);
  expect(await new Response(second.stderr).text()).toContain("another holdfast serves");
});

test("it ends on SIGTERM, and the next one knows the same keys", async () => {
  const data = freshData();
  const first = await serving(data);
  const key = keyOf(data);
  expect((await get(first.url, key)).status).toBe(200);
  first.child.kill("SIGTERM");
  expect(await first.child.exited).toBe(0);
  unlinkSync(join(data, "admin.key"));
  const second = await serving(data);
  expect((await get(second.url, key)).status).toBe(200);
  expect(keyOf(data)).not.toBe(key);
  expect((await get(second.url, keyOf(data))).status).toBe(200);
});

test("a killed one leaves nothing that keeps the next from starting", async () => {
  const data = freshData();
  const first = await serving(data);
  first.child.kill("SIGKILL");
  await first.child.exited;
  const second = await serving(data);
  expect((await get(second.url, keyOf(data))).status).toBe(200);
});

test("an address that would carry keys in the clear is refused", async () => {
  const data = freshData();
  const child = start(data, "--address", "0.0.0.0");
  expect(await child.exited).toBe(1);
  expect(await new Response(child.stderr).text()).toContain("--behind-proxy");
  expect(existsSync(join(data, "serve.pid"))).toBe(false);
});
