/** The second half of scripts/up: builds what changed, starts what does not run, says how to go on. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { Fault } from "../../src/core/fault.ts";
import { holdLock } from "../../src/system/process.ts";
import {
  binaryOf,
  die,
  isHealthy,
  type Place,
  placeOf,
  rememberPort,
  say,
  servePid,
  until,
  urlOf,
} from "./place.ts";
import { start, stopServe } from "./start.ts";

const { values } = parseArgs({
  options: {
    data: { type: "string" },
    port: { type: "string" },
    base: { type: "string" },
    detach: { type: "string" },
    json: { type: "string" },
  },
});
const place: Place = { data: values.data ?? "/var/lib/holdfast", port: Number(values.port) };
const startMsMax = 60_000;

const letNext = await onlyOne();
const before = placeOf(place.data);
const moves = servePid(place) !== undefined && before.port !== place.port;
await refuseTakenPort();
const changed = await installBinary();
run("the base and boot files", [
  binaryOf(place),
  "images",
  "build",
  "--data",
  place.data,
  "--base",
  values.base ?? "slim",
]);
checkSettings();
const reason = whyRestart();
if (reason !== undefined && servePid(place) !== undefined) {
  say(`${reason}: restarting; VMs and commands run on`);
  await stopServe(before);
}
rememberPort(place);
const { foreground } = start(place, values.detach === "true");
if (!(await until(startMsMax, () => isHealthy(place)))) {
  say(Bun.spawnSync(["tail", "-n", "5", join(place.data, "log", "serve.log")]).stdout.toString());
  die(`nothing answers on ${urlOf(place)}`, `look at ${place.data}/log/serve.log`);
}
letNext();
report();
if (foreground) await foreground;

function whyRestart(): string | undefined {
  if (changed) return "the binary was built anew";
  if (moves) return `moving from port ${before.port} to ${place.port}`;
  if (!existsSync(join(place.data, "admin.key")))
    return "admin.key is gone and a start makes another";
  return undefined;
}

/** Waits until no other run is at work here. Returns what lets the next one begin. */
async function onlyOne(): Promise<() => void> {
  const path = join(".cache", "up.lock");
  for (let tries = 0; ; tries++) {
    try {
      return holdLock(path);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (tries === 0) say("waiting: another scripts/up is at work here");
      await Bun.sleep(500);
    }
  }
}

/** What `serve` would refuse is told now, and not by its log. */
function checkSettings(): void {
  const check = ["serve", "--check", "--data", place.data, "--port", String(place.port)];
  const { exitCode } = Bun.spawnSync([binaryOf(place), ...check], { stdio: ["ignore", 2, 2] });
  if (exitCode !== 0) die("it would not start", "the lines above say why");
}

/** A port that another program has is told before anything is built. */
async function refuseTakenPort(): Promise<void> {
  if (servePid(place) !== undefined && !moves) return;
  try {
    Bun.listen({ hostname: "127.0.0.1", port: place.port, socket: { data() {} } }).stop(true);
  } catch {
    const who = (await isHealthy(place)) ? "another Holdfast" : "another program";
    die(`port ${place.port} is taken by ${who}`, "choose another: --port N");
  }
}

/** Builds, and puts the result in place in one step. Returns whether it differs from what was there. */
async function installBinary(): Promise<boolean> {
  run("the binary", [process.execPath, "scripts/build.ts"]);
  const [built, target] = ["dist/holdfast", binaryOf(place)];
  if (existsSync(target) && digestOf(built) === digestOf(target)) return false;
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(built, `${target}.new`);
  chmodSync(`${target}.new`, 0o755);
  renameSync(`${target}.new`, target);
  return true;
}

function digestOf(path: string): string {
  return new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");
}

/** Progress goes to stderr, so that stdout ends with what a program reads. */
function run(what: string, argv: string[]): void {
  say(`building ${what}`);
  const { exitCode } = Bun.spawnSync(argv, { stdin: "ignore", stdout: 2, stderr: "inherit" });
  if (exitCode !== 0) die(`building ${what} failed`, "read the lines above; a second run goes on");
}

function report(): void {
  const keyPath = join(place.data, "admin.key");
  const key = existsSync(keyPath) ? readFileSync(keyPath, "utf8").trim() : null;
  if (values.json === "true") {
    const pid = servePid(place) ?? null;
    process.stdout.write(`${JSON.stringify({ url: urlOf(place), admin_key: key, pid })}\n`);
    return;
  }
  const binary = binaryOf(place);
  process.stdout.write(`
Holdfast runs.
  URL            ${urlOf(place)}
  admin API key  ${key ?? "not to be read; look at the log"}
  API docs       ${urlOf(place)}/docs

Try it:
  export PATH=${dirname(binary)}:$PATH
  holdfast create demo                    # a new sandbox is stopped and uses nothing
  holdfast exec demo -- uname -a          # starts it first; exits with the command's own code
  holdfast exec -d demo -- sh -c 'sleep 60; echo done'
  holdfast logs -f demo                   # follows it; go away and come back
  holdfast ps demo                        # how each command ended

Stop it: scripts/down --data ${place.data}   (VMs and commands run on, unless --vms)
`);
}
