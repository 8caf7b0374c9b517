/** `holdfast guest`: the guest part in a real VM. Loads nothing that it does not need. */
import { spawnSync } from "node:child_process";
import { constants, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Cgroups, prepareCgroups } from "./cgroups.ts";
import { GuestPart } from "./part.ts";
import { findDevice, SocketPort } from "./port.ts";

const portName = "holdfast.guest";
const clockSlackMs = 500;
const powerOffPatienceMs = 60_000;

export interface GuestMainOptions {
  runDirectory?: string;
  runnerPath?: string;
  /** Where to listen for hosts instead of at the virtio-serial port; then nothing of the machine is touched. */
  socketPath?: string;
  bootId?: string;
  version: string;
  commandsMax?: number;
}

export async function runGuestPart(options: GuestMainOptions): Promise<never> {
  const { runDirectory = "/run/holdfast", version, commandsMax } = options;
  const { runnerPath = "/run/holdfast/tools/bin/holdfast-run" } = options;
  const inVm = options.socketPath === undefined;
  mkdirSync(runDirectory, { recursive: true });
  const bridgePath = join(runDirectory, "bridge");
  const part = new GuestPart({
    port: new SocketPort(bridgePath),
    runDirectory,
    runnerPath,
    bootId: options.bootId ?? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    version,
    cgroups: inVm ? prepareCgroups() : new Cgroups(undefined),
    powerOff: inVm ? powerOff : () => process.exit(0),
    setClock: inVm ? setClock : () => {},
    ...(commandsMax === undefined ? {} : { commandsMax }),
  });
  const wakes = listenForWakes(join(runDirectory, "wake"), (id) => part.wake(id));
  const runs = part.run();
  void keepBridge([
    runnerPath,
    "--bridge",
    options.socketPath ?? (await waitForDevice()),
    bridgePath,
  ]);
  await wakes;
  return runs;
}

/** Without its bridge the guest part is deaf: it ends, and its unit starts it again. */
async function keepBridge(argv: string[]): Promise<never> {
  const bridge = Bun.spawn(argv, { stdio: ["ignore", "inherit", "inherit"] });
  process.stderr.write(`holdfast guest: the bridge ended with ${await bridge.exited}\n`);
  process.exit(1);
}

async function waitForDevice(): Promise<string> {
  while (true) {
    const device = findDevice(portName);
    if (device !== undefined) return device;
    await Bun.sleep(100);
  }
}

/** Opened for writing, too, so that it never ends when the last runner closes it. */
async function listenForWakes(path: string, wake: (id: string) => void): Promise<void> {
  if (!existsSync(path)) spawnSync("mkfifo", ["-m", "600", path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const decoder = new TextDecoder();
  let tail = "";
  for await (const bytes of Bun.file(fd).stream()) {
    const lines = (tail + decoder.decode(bytes)).split("\n");
    tail = lines.pop() ?? "";
    for (const id of new Set(lines)) wake(id);
  }
}

/** By systemd; where that does not answer, by the kernel itself. */
function powerOff(): void {
  spawnSync("sync", { stdio: "ignore" });
  const { status } = spawnSync("systemctl", ["poweroff", "--no-block"], { stdio: "ignore" });
  setTimeout(
    () => writeFileSync("/proc/sysrq-trigger", "o"),
    status === 0 ? powerOffPatienceMs : 0,
  );
}

function setClock(hostTimeMs: number): void {
  if (Math.abs(hostTimeMs - Date.now()) <= clockSlackMs) return;
  spawnSync("date", ["--set", `@${(hostTimeMs / 1000).toFixed(3)}`], { stdio: "ignore" });
}
