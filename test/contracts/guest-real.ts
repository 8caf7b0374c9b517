/** The real guest part as a process of this machine, its port a unix socket. */
import { expect } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildRunner } from "../../scripts/build-runner.ts";
import { SocketGuests } from "../../src/guest/channel.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { type GuestFixture, Listener } from "./guest.contract.ts";

const repository = join(import.meta.dir, "../..");

export interface RealGuest extends GuestFixture {
  /** Where the guest part keeps its state. */
  directory: string;
  socketPath: string;
  /** Resolves once the guest part's process has ended. */
  exited: () => Promise<unknown>;
}

export async function begin(more: { commandsMax?: number } = {}): Promise<RealGuest> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-guest-"));
  const runnerPath = await buildRunner();
  const socketPath = join(directory, "port");
  const settings = { runDirectory: directory, runnerPath, socketPath, ...more };
  let part = await startPart(settings);
  const options = { pathOf: () => socketPath, clock: systemClock, random: systemRandom };
  return {
    directory,
    socketPath,
    exited: () => part.exited,
    guests: new SocketGuests(options),
    ref: { sandbox: "sb", run: 1 },
    restart: async () => {
      part.kill("SIGKILL");
      await part.exited;
      // Its bridge ends a moment later; until then the path may still name it.
      await waitUntil(() => !isListening(socketPath));
      part = await startPart(settings);
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

async function startPart(settings: { socketPath: string; runDirectory: string }) {
  const { socketPath } = settings;
  rmSync(socketPath, { force: true });
  const script = `import { runGuestPart } from "${repository}/src/guest/agent/main.ts";
    await runGuestPart(${JSON.stringify({
      ...settings,
      bootId: "11111111-1111-4111-8111-111111111111",
      version: "test",
    })});`;
  const part = Bun.spawn([process.execPath, "-e", script], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  await waitUntil(() => isListening(socketPath));
  return part;
}

async function waitUntil(look: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !look(); tries++) await Bun.sleep(20);
}

/** Between bind and listen the path is there and refuses. __SO_ACCEPTCON tells them apart (unix(7)). */
function isListening(path: string): boolean {
  const sockets = readFileSync("/proc/net/unix", "utf8").split("\n");
  return sockets.some((line) => line.endsWith(` ${path}`) && line.split(" ")[3] === "00010000");
}

export async function withListener(
  work: (listener: Listener, fixture: RealGuest) => Promise<void>,
  more: { commandsMax?: number } = {},
): Promise<void> {
  const fixture = await begin(more);
  try {
    const listener = new Listener(await fixture.guests.open(fixture.ref));
    await listener.greet();
    await work(listener, fixture);
  } finally {
    await fixture.end();
  }
}
