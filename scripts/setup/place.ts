/** Where an installation keeps its things, and how its processes are found again. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Place {
  data: string;
  port: number;
}

const portDefault = 8440;

const portPath = (data: string): string => join(data, "port");

/** The installation in this directory, on the port it was brought up on. */
export function placeOf(data: string): Place {
  const path = portPath(data);
  const port = existsSync(path) ? Number(readFileSync(path, "utf8")) : portDefault;
  return { data, port };
}

export function rememberPort({ data, port }: Place): void {
  writeFileSync(portPath(data), `${port}\n`);
}

export const binaryOf = (place: Place): string => join(place.data, "bin", "holdfast");
export const urlOf = (place: Place): string => `http://127.0.0.1:${place.port}`;
export const unitName = "holdfast.service";
export const unitPath = `/etc/systemd/system/${unitName}`;

/** systemd as PID 1, which the binary's presence alone does not mean. */
export const hasSystemd = (): boolean => existsSync("/run/systemd/system");

/** The pid in a file, if it names a living process whose command line holds `word`. */
export function livingPid(path: string, word: string): number | undefined {
  if (!existsSync(path)) return undefined;
  const pid = Number.parseInt(readFileSync(path, "utf8"), 10);
  const commandLine = `/proc/${pid}/cmdline`;
  if (!Number.isInteger(pid) || !existsSync(commandLine)) return undefined;
  return readFileSync(commandLine, "utf8").includes(word) ? pid : undefined;
}

export const servePid = ({ data }: Place): number | undefined =>
  livingPid(join(data, "serve.pid"), "serve");

export const supervisorPid = ({ data }: Place): number | undefined =>
  livingPid(join(data, "supervise.pid"), "supervise.sh");

/** Whether the appliance answers. */
export async function isHealthy(place: Place): Promise<boolean> {
  const signal = AbortSignal.timeout(2_000);
  return fetch(`${urlOf(place)}/healthz`, { signal }).then(
    (response) => response.ok,
    () => false,
  );
}

/** Looks every 100 ms until it is true or `ms` have passed. */
export async function until(ms: number, look: () => boolean | Promise<boolean>): Promise<boolean> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    if (await look()) return true;
    await Bun.sleep(100);
  }
  return look();
}

export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function die(problem: string, hint: string): never {
  say(`error: ${problem}\n  what to do: ${hint}`);
  process.exit(1);
}
