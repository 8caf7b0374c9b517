/** What is written to where nothing is taken: a full disk, or a reader that left. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { holdfast, type Simulated, serveSimulated } from "./simulated.ts";

let simulated: Simulated;

beforeAll(async () => {
  simulated = await serveSimulated();
  await holdfast(simulated, ["create", "box", "--size", "tiny"]);
});
afterAll(() => {
  simulated.stop();
  expect(simulated.bugs).toEqual([]);
});

/** By a shell, with what it does to the command's output. */
async function shell(argv: string, redirected: string) {
  const line = `set -o pipefail; ${process.execPath} src/main.ts ${argv} ${redirected}`;
  const child = Bun.spawn(["bash", "-c", line], {
    env: { PATH: "/usr/bin:/bin", HOLDFAST_URL: simulated.url, HOLDFAST_API_KEY: simulated.secret },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 10_000,
  });
  const words = await new Response(child.stderr).text();
  return { code: await child.exited, words };
}

test.each([
  ["exec box -- program 100 500000 3", 75],
  ["ls", 1],
])(
  "%s says that what it wrote is lost",
  async (argv, code) => {
    const ended = await shell(argv, ">/dev/full");
    expect(ended.code).toBe(code);
    expect(ended.words).toContain("ENOSPC");
  },
  20_000,
);

test("a reader that wants no more ends exec", async () => {
  const argv = "exec box -- program 100 500000 3";
  expect(await shell(argv, "| head -c 10")).toEqual({ code: 141, words: "" });
}, 20_000);

test("a log that is not taken ends nothing", async () => {
  const data = mkdtempSync(join(tmpdir(), "holdfast-mute-"));
  const argv = [process.execPath, "src/main.ts", "serve", "--data", data, "--port", "0"];
  const child = Bun.spawn(argv, { stdio: ["ignore", Bun.file("/dev/full"), "pipe"] });
  try {
    const urlPath = join(data, "serve.url");
    while (!existsSync(urlPath)) await Bun.sleep(20);
    const health = `${readFileSync(urlPath, "utf8").trim()}/healthz`;
    for (let times = 0; times < 3; times++) expect((await fetch(health)).status).toBe(200);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  } finally {
    child.kill("SIGKILL");
    rmSync(data, { recursive: true });
  }
}, 20_000);
