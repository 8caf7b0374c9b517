import { afterAll, beforeAll, expect, test } from "bun:test";
import { outputOf } from "../simulation/programs.ts";
import { holdfast, type Simulated, serveSimulated } from "./simulated.ts";

let simulated: Simulated;
const run = (...argv: string[]) => holdfast(simulated, argv);

beforeAll(async () => {
  simulated = await serveSimulated();
});
afterAll(() => {
  simulated.stop();
  expect(simulated.bugs).toEqual([]);
});

test("the main job: create, run, come back, read how it ended", async () => {
  expect((await run("create", "web", "--size", "tiny")).code).toBe(0);
  const ran = await run("exec", "web", "--", "program", "200", "5000", "3");
  const { stdout: line } = await run("ps", "web", "--json");
  const command = JSON.parse(line.toString());
  expect(ran.code).toBe(3);
  expect(ran.stdout).toEqual(Buffer.from(outputOf(command.id, 5000)));
  expect(command).toMatchObject({ state: "exited", exit_code: 3, output: { bytes: 5000 } });
  const logs = await run("logs", "-f", command.id);
  expect([logs.code, logs.stdout]).toEqual([3, ran.stdout]);
  const detached = await run("exec", "-d", "web", "--", "program", "0", "0", "0");
  expect(detached.stdout.toString()).toMatch(/^cmd_[0-9a-z]{26}\n$/);
  expect((await run("stop", "web")).stdout.toString()).toBe("web is stopped\n");
  expect((await run("rm", "-q", "web")).code).toBe(0);
  expect((await run("ls")).stdout.toString()).toBe("");
}, 30_000);

test("a refusal, wrong use and a wrong key have their own exit codes, also as JSON", async () => {
  expect((await run("exec", "none", "--", "true")).code).toBe(125);
  expect((await run("start", "none")).code).toBe(1);
  expect((await run("start")).code).toBe(2);
  expect((await run("nothing")).code).toBe(2);
  const refused = await run("start", "none", "--json");
  expect(JSON.parse(refused.stdout.toString()).code).toBe("sandbox_not_found");
  expect(refused.stderr).toBe("");
  const wrong = { ...simulated, secret: `hf_${"x".repeat(43)}` };
  expect((await holdfast(wrong, ["ls"])).code).toBe(4);
}, 30_000);

test("exec goes on through crashes of the server, loses no byte and runs nothing twice", async () => {
  await run("create", "crash", "--size", "tiny", "--start");
  const running = run("exec", "crash", "--", "program", "600000", "20000", "7");
  for (let crashes = 0; crashes < 3; crashes++) {
    await Bun.sleep(400);
    await simulated.world.crash();
  }
  const ran = await running;
  const { stdout } = await run("ps", "crash", "-q");
  const [id = "", ...others] = stdout.toString().trim().split("\n");
  expect([ran.code, others]).toEqual([7, []]);
  expect(ran.stdout).toEqual(Buffer.from(outputOf(id, 20_000)));
  expect(simulated.world.machine.executed.get(id)).toBe(1);
}, 60_000);

test("a proxy that drops every first answer makes nothing happen twice", async () => {
  const seen = new Set<string>();
  const proxy = Bun.serve({
    port: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const body = request.method === "GET" ? undefined : await request.arrayBuffer();
      const { method, headers } = request;
      const init = { method, headers, ...(body && { body }) };
      const answer = await fetch(simulated.url + pathname + search, init);
      const name = `${method} ${pathname}${search}`;
      if (seen.has(name)) return answer;
      seen.add(name);
      return new Response("bad gateway", { status: 502 });
    },
  });
  const through = { ...simulated, url: proxy.url.origin };
  expect((await holdfast(through, ["create", "dropped", "--size", "tiny"])).code).toBe(0);
  const ran = await holdfast(through, ["exec", "dropped", "--", "program", "5", "100", "5"]);
  expect(ran.code).toBe(5);
  const commands = (await run("ps", "dropped", "-q")).stdout.toString().trim().split("\n");
  const boxes = (await run("ls", "--json")).stdout.toString();
  expect(commands.length).toBe(1);
  expect(boxes.match(/"name":"dropped"/g)?.length).toBe(1);
  await proxy.stop(true);
}, 60_000);

test("an answer that is cut off is asked for again", async () => {
  let cuts = 0;
  const proxy = Bun.serve({
    port: 0,
    fetch: async ({ url, method, headers, body }) => {
      const { pathname, search } = new URL(url);
      const init = { method, headers, ...(body && { body: await new Response(body).bytes() }) };
      const answer = await fetch(simulated.url + pathname + search, init);
      if (!pathname.endsWith("/output") || cuts++ % 2 === 1) return answer;
      const half = (await answer.bytes()).subarray(0, 50);
      const parts = new ReadableStream({
        async pull(controller) {
          controller.enqueue(half);
          await Bun.sleep(20);
          controller.error(new Error("cut off"));
        },
      });
      return new Response(parts, { headers: answer.headers });
    },
    error: () => new Response(null, { status: 502 }),
  });
  const through = { ...simulated, url: proxy.url.origin };
  expect((await holdfast(through, ["create", "cut", "--size", "tiny"])).code).toBe(0);
  const ran = await holdfast(through, ["exec", "cut", "--", "program", "5", "60000", "5"]);
  expect([ran.code, ran.stdout.length]).toEqual([5, 60_000]);
  expect(cuts).toBeGreaterThan(1);
  await proxy.stop(true);
}, 30_000);

test("stdin is passed on to its end", async () => {
  await run("create", "pipe", "--size", "tiny");
  const text = new TextEncoder().encode("line\n".repeat(60_000));
  const ran = await holdfast(
    simulated,
    ["exec", "-i", "pipe", "--", "program", "30000", "10"],
    text,
  );
  expect([ran.code, ran.stdout.length]).toEqual([0, 10]);
}, 30_000);
