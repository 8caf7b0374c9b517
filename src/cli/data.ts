/** The data directory, as `serve` needs it: private, ours alone, with a place that may hold code. */
import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../core/fault.ts";
import { writeWhole } from "../system/files.ts";

/** May be called twice. @throws Fault `denied`. */
export function prepareData(data: string): void {
  try {
    mkdirSync(join(data, "tmp"), { recursive: true, mode: 0o700 });
    accessSync(data, constants.W_OK);
  } catch (error) {
    throw new Fault("denied", `${data} cannot be written`, {
      hint: "run as root, or choose another directory: --data DIR",
      cause: error,
    });
  }
}

/** The options of the mount that holds a path, from /proc/self/mountinfo (proc(5)). */
export function isNoexec(path: string): boolean {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").trim().split("\n");
  const holding = mounts
    .map((line) => line.split(" "))
    .filter(([, , , , at = "/"]) => path === at || path.startsWith(at === "/" ? "/" : `${at}/`))
    .toSorted((a, b) => (a[4]?.length ?? 0) - (b[4]?.length ?? 0));
  return holding.at(-1)?.[5]?.split(",").includes("noexec") ?? false;
}

/** The database addon is unpacked into this directory and loaded from there. */
export function refuseNoexec(directory: string): void {
  if (!isNoexec(directory)) return;
  throw new Fault("unsupported", `${directory} is on a file system mounted noexec`, {
    code: "data_noexec",
    hint: "mount it without noexec, or choose another data directory: --data DIR",
  });
}

/** For scripts that stop us and for clients on this machine, who never read half of it. */
export function announce(data: string, url: string): void {
  writeWhole(join(data, "serve.pid"), `${process.pid}\n`);
  writeWhole(join(data, "serve.url"), `${url}\n`);
}
