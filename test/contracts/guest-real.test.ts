import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildRunner } from "../../scripts/build-runner.ts";
import { SocketGuests } from "../../src/guest/channel.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { type GuestFixture, guestContract, Listener, newCommandId } from "./guest.contract.ts";

const repository = join(import.meta.dir, "../..");

/** The guest part as a process of this machine, its port a unix socket. */
async function begin(): Promise<GuestFixture> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-guest-"));
  const runnerPath = await buildRunner();
  const socketPath = join(directory, "port");
  let part = await startPart(directory, socketPath, runnerPath);
  const options = { pathOf: () => socketPath, clock: systemClock, random: systemRandom };
  return {
    guests: new SocketGuests(options),
    ref: { sandbox: "sb", run: 1 },
    restart: async () => {
      part.kill("SIGKILL");
      await part.exited;
      part = await startPart(directory, socketPath, runnerPath);
    },
    end: async () => {
      part.kill("SIGKILL");
      await part.exited;
      endCommands(join(directory, "commands"));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Runners and programs that a test left behind, by the numbers they wrote down. */
function endCommands(commands: string): void {
  for (const id of existsSync(commands) ? readdirSync(commands) : [])
    for (const [name, sign] of [
      ["claim", 1],
      ["started", -1],
    ] as const) {
      const path = join(commands, id, name);
      const pid = existsSync(path) ? Number.parseInt(readFileSync(path, "utf8"), 10) : 0;
      if (pid > 1 && existsSync(`/proc/${pid}`)) killQuietly(sign * pid);
    }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("ESRCH");
  }
}

async function startPart(directory: string, socketPath: string, runnerPath: string) {
  rmSync(socketPath, { force: true });
  const script = `import { runGuestPart } from "${repository}/src/guest/agent/main.ts";
    await runGuestPart(${JSON.stringify({
      runDirectory: directory,
      runnerPath,
      socketPath,
      bootId: "11111111-1111-4111-8111-111111111111",
      version: "test",
    })});`;
  const part = Bun.spawn([process.execPath, "-e", script], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  for (let tries = 0; tries < 200 && !existsSync(socketPath); tries++) await Bun.sleep(20);
  return part;
}

guestContract("the real guest part", begin, {
  prints: (bytes) => ["head", "-c", String(bytes), "/dev/zero"],
  exits: (code) => ["sh", "-c", `exit ${code}`],
  sleeps: (seconds) => ["sleep", String(seconds)],
  user: "root",
});

async function withListener(work: (listener: Listener, fixture: GuestFixture) => Promise<void>) {
  const fixture = await begin();
  try {
    const listener = new Listener(await fixture.guests.open(fixture.ref));
    await listener.greet();
    await work(listener, fixture);
  } finally {
    await fixture.end();
  }
}

test("what could not be launched says why", () =>
  withListener(async (listener) => {
    const cases = [
      { argv: ["/no/such/program"], reason: "not_found" },
      { argv: ["/etc/passwd"], reason: "not_executable" },
      { argv: ["true"], more: { cwd: "/no/such/place" }, reason: "bad_cwd" },
      { argv: ["true"], more: { user: "nobody-here" }, reason: "bad_user" },
    ];
    for (const { argv, more, reason } of cases) {
      const id = newCommandId();
      await listener.launch(id, argv, more ?? {});
      expect((await listener.ended(id)).end).toMatchObject({ kind: "launch_failed", reason });
    }
  }));

test("a child that holds the pipes does not delay the end of its command", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    await listener.launch(id, ["sh", "-c", "sleep 600 & echo started"]);
    expect((await listener.ended(id)).end).toEqual({ kind: "exited", exit_code: 0 });
    expect(listener.output.get(id)?.toString()).toBe("started\n");
  }));

test("a command is ended when its time has passed", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    await listener.launch(id, ["sleep", "600"], { timeout_ms: 300 });
    expect((await listener.ended(id)).end).toMatchObject({ kind: "timed_out", signal: "TERM" });
  }));

test("stdin arrives once and in order, also when a piece is sent twice", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    await listener.launch(id, ["cat"], { stdin: true });
    const send = (offset: number, text: string, eof = false) =>
      listener.channel.send({
        type: "stdin",
        command_id: id,
        offset,
        eof,
        payload: new TextEncoder().encode(text),
      });
    await send(0, "one ");
    await send(0, "one ");
    await send(4, "two");
    await send(7, "", true);
    expect((await listener.ended(id)).end).toEqual({ kind: "exited", exit_code: 0 });
    expect(listener.output.get(id)?.toString()).toBe("one two");
  }));

test("30,000 lines arrive byte-exact over 20 connections and 3 kills of the guest part", () =>
  withListener(async (first, fixture) => {
    const id = newCommandId();
    await first.launch(id, ["seq", "1", "30000"]);
    let listener = first;
    for (let connection = 0; connection < 20; connection++) {
      await listener.until((message) => message.type === "output" || message.type === "ended");
      if (connection % 7 === 6) await fixture.restart();
      listener = new Listener(await fixture.guests.open(fixture.ref), listener.output);
      await listener.greet();
    }
    await listener.ended(id);
    const lines = Array.from({ length: 30_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(listener.output.get(id)?.toString() === lines).toBe(true);
  }));

test("a program that writes more than is kept waits until the host has taken some", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    await listener.launch(id, ["head", "-c", "30000000", "/dev/zero"]);
    expect((await listener.ended(id)).output_bytes).toBe(30_000_000);
    expect(listener.output.get(id)?.length).toBe(30_000_000);
  }));
