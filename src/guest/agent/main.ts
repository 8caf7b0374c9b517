/** `holdfast guest`: the guest part in a real VM. Loads nothing that it does not need. */
import { spawnSync } from "node:child_process";
import { closeSync, createReadStream, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { prepareCgroups } from "./cgroups.ts";
import { GuestPart } from "./part.ts";
import { DevicePort, findDevice, SocketPort } from "./port.ts";

const portName = "holdfast.guest";
const clockSlackMs = 500;

export interface GuestMainOptions {
  runDirectory?: string;
  runnerPath?: string;
  /** A unix socket instead of the virtio-serial port; then nothing of the machine is touched. */
  socketPath?: string;
  bootId?: string;
  version: string;
}

export async function runGuestPart(options: GuestMainOptions): Promise<never> {
  const { runDirectory = "/run/holdfast", socketPath, version } = options;
  mkdirSync(runDirectory, { recursive: true });
  const bootId = options.bootId ?? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  const part = new GuestPart({
    port:
      socketPath === undefined ? new DevicePort(await waitForDevice()) : new SocketPort(socketPath),
    runDirectory,
    runnerPath: options.runnerPath ?? "/run/holdfast/tools/bin/holdfast-run",
    bootId,
    version,
    cgroups: socketPath === undefined ? prepareCgroups() : undefined,
    powerOff: socketPath === undefined ? powerOff : () => process.exit(0),
    setClock: socketPath === undefined ? setClock : () => {},
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
  spawnSync("mkfifo", ["-m", "600", path]);
  const fd = openSync(path, "r+");
  let tail = "";
  createReadStream(path, { fd, encoding: "utf8" }).on("data", (text) => {
    const lines = (tail + text).split("\n");
    tail = lines.pop() ?? "";
    for (const id of new Set(lines)) wake(id);
  });
  process.on("exit", () => closeSync(fd));
}

function powerOff(): void {
  spawnSync("systemctl", ["poweroff", "--no-block"], { stdio: "ignore" });
}

function setClock(hostTimeMs: number): void {
  if (Math.abs(hostTimeMs - Date.now()) <= clockSlackMs) return;
  spawnSync("date", ["--set", `@${(hostTimeMs / 1000).toFixed(3)}`], { stdio: "ignore" });
}
