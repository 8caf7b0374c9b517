/** The second half of scripts/up: builds what changed, starts what does not run, says how to go on. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { binaryOf, die, isHealthy, type Place, say, servePid, until, urlOf } from "./place.ts";
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
if (changed && servePid(place) !== undefined) {
  say("restarting with the binary just built; VMs and commands run on");
  await stopServe(place);
}
const { foreground } = start(place, values.detach === "true");
if (!(await until(startMsMax, () => isHealthy(place))))
  die(`nothing answers on ${urlOf(place)}`, `look at ${place.data}/log/serve.log`);
report();
if (foreground) await foreground;

/** A port that another program has is told before anything is built. */
async function refuseTakenPort(): Promise<void> {
  if (servePid(place) !== undefined) return;
  try {
    Bun.listen({ hostname: "127.0.0.1", port: place.port, socket: { data() {} } }).stop(true);
  } catch {
    die(`port ${place.port} is taken by another program`, "choose another: --port N");
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
  admin API key  ${key ?? `not kept; restart serve for a fresh one in ${keyPath}`}
  API docs       ${urlOf(place)}/docs

Try it:
  ${binary} create demo
  ${binary} exec demo -- uname -a
`);
}
