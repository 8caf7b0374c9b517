/** `holdfast guest`: the guest part in a real VM. Loads nothing that it does not need. */
import { spawnSync } from "node:child_process";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Cgroups, prepareCgroups } from "./cgroups.ts";
import { GuestPart } from "./part.ts";
import { DevicePort, findDevice, SocketPort } from "./port.ts";

const portName = "holdfast.guest";
const clockSlackMs = 500;
const powerOffPatienceMs = 60_000;

export interface GuestMainOptions {
  runDirectory?: string;
  runnerPath?: string;
  /** A unix socket instead of the virtio-serial port; then nothing of the machine is touched. */
  socketPath?: string;
  bootId?: string;
  version: string;
  commandsMax?: number;
}

export async function runGuestPart(options: GuestMainOptions): Promise<never> {
  const { runDirectory = "/run/holdfast", socketPath, version, commandsMax } = options;
  mkdirSync(runDirectory, { recursive: true });
  const part = new GuestPart({
    port:
      socketPath === undefined ? new DevicePort(await waitForDevice()) : new SocketPort(socketPath),
    runDirectory,
    runnerPath: options.runnerPath ?? "/run/holdfast/tools/bin/holdfast-run",
    bootId: options.bootId ?? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    version,
    cgroups: socketPath === undefined ? prepareCgroups() : new Cgroups(undefined),
    powerOff: socketPath === undefined ? powerOff : () => process.exit(0),
    setClock: socketPath === undefined ? setClock : () => {},
    ...(commandsMax === undefined ? {} : { commandsMax }),
  });
  listenForWakes(join(runDirectory, "wake"), (id) => part.wake(id));
  return part.run();
}

async function waitForDevice(): Promise<string> {
  while (true) {
    const device = findDevice(portName);
    if (device !== undefined) return device;
    await Bun.sleep(100);
  }
}

/** Opened for writing, too, so that it never ends when the last runner closes it. */
function listenForWakes(path: string, wake: (id: string) => void): void {
  if (!existsSync(path)) spawnSync("mkfifo", ["-m", "600", path]);
  let tail = "";
  createReadStream(path, { fd: openSync(path, "r+"), encoding: "utf8" }).on("data", (text) => {
    const lines = (tail + text).split("\n");
    tail = lines.pop() ?? "";
    for (const id of new Set(lines)) wake(id);
  });
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
