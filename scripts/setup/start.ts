/** Starts and stops the appliance: by systemd where it is PID 1, else by a restart loop. */

import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  binaryOf,
  die,
  hasSystemd,
  type Place,
  say,
  servePid,
  supervisorPid,
  unitName,
  unitPath,
  until,
} from "./place.ts";

const stopMsMax = 30_000;

export interface Started {
  /** Ends with the supervisor, where it was left in the foreground. */
  foreground: Promise<void> | undefined;
}

export function start(place: Place, detach: boolean): Started {
  mkdirSync(join(place.data, "log"), { recursive: true });
  if (hasSystemd()) {
    startUnit(place);
    return { foreground: undefined };
  }
  if (supervisorPid(place) !== undefined) return { foreground: undefined };
  say("no systemd here: started with a restart loop; after a reboot, run scripts/up again");
  return { foreground: supervise(place, detach) };
}

function startUnit(place: Place): void {
  const unit = unitText(place);
  const known = existsSync(unitPath) ? readFileSync(unitPath, "utf8") : "";
  if (known !== unit) {
    writeFileSync(unitPath, unit);
    systemctl("daemon-reload");
    systemctl("enable", unitName);
    // Another data directory or port takes effect with a restart; VMs are units of their own.
    if (known !== "") systemctl("restart", unitName);
  }
  systemctl("start", unitName);
}

/** From the template beside the sources, so that the shipped unit and the installed one agree. */
function unitText(place: Place): string {
  return readFileSync("systemd/holdfast.service", "utf8")
    .replaceAll("@BINARY@", binaryOf(place))
    .replaceAll("@DATA@", place.data)
    .replaceAll("@PORT@", String(place.port));
}

function systemctl(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["systemctl", ...argv], { stderr: "pipe" });
  if (exitCode === 0) return;
  die(`systemctl ${argv.join(" ")}: ${stderr.toString().trim()}`, "systemctl status holdfast");
}

/** In a session of its own, holding none of our descriptors. */
function supervise(place: Place, detach: boolean): Promise<void> | undefined {
  const log = openSync(join(place.data, "log", "serve.log"), "a");
  const child = spawn(
    "/bin/sh",
    [resolve("scripts/setup/supervise.sh"), binaryOf(place), place.data, String(place.port)],
    { detached: true, stdio: ["ignore", log, log], cwd: "/" },
  );
  closeSync(log);
  if (detach) {
    child.unref();
    return undefined;
  }
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.on(name, () => {
      say("stopping; VMs and commands run on");
      child.kill("SIGTERM");
    });
  return ended;
}

/** Ends `serve` so that whoever supervises it starts the binary that is there now. */
export async function stopServe(place: Place): Promise<void> {
  if (hasSystemd() && existsSync(unitPath)) {
    systemctl("stop", unitName);
    return;
  }
  const supervisor = supervisorPid(place);
  if (supervisor !== undefined) process.kill(supervisor, "SIGTERM");
  const pid = servePid(place);
  if (pid !== undefined) process.kill(pid, "SIGTERM");
  const gone = (): boolean => supervisorPid(place) === undefined && servePid(place) === undefined;
  if (!(await until(stopMsMax, gone))) die("serve does not end", `kill -9 ${servePid(place)}`);
}
