/** Stops the appliance; with --vms stops every sandbox first, so that their work ends in order. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  binaryOf,
  die,
  hasSystemd,
  isHealthy,
  placeOf,
  say,
  servePid,
  supervisorPid,
  unitPath,
  until,
  urlOf,
} from "./place.ts";
import { start, stopServe } from "./start.ts";

const startMsMax = 60_000;

const usage = `usage: scripts/down [--data DIR] [--vms]

  --data DIR  the installation to stop (default /var/lib/holdfast)
  --vms       stop all sandboxes, too; without it, VMs and their commands run on

exit codes: 0 it does not run (any more) · 1 no installation there, or something does not end · 2 usage
`;

const { values } = parse();
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const calledFrom = process.env["HOLDFAST_CALLED_FROM"] ?? process.cwd();
const place = placeOf(resolve(calledFrom, values.data ?? "/var/lib/holdfast"));
if (!existsSync(binaryOf(place)))
  die(`no Holdfast was brought up in ${place.data}`, "name its directory: scripts/down --data DIR");

if (values.vms) await stopVms();
const ran = servePid(place) !== undefined || supervisorPid(place) !== undefined;
if (hasSystemd() && existsSync(unitPath)) Bun.spawnSync(["systemctl", "disable", "holdfast"]);
await stopServe(place);
const what = ran ? "stopped" : "it did not run";
say(`${what}; ${values.vms ? "all VMs are stopped" : "VMs and their commands run on"}`);

/** In order through the API, which is started for it where it does not run. */
async function stopVms(): Promise<void> {
  const binary = binaryOf(place);
  if (!(await isHealthy(place))) {
    if (servePid(place) === undefined) say("not running: started to stop the VMs in order");
    start(place, true);
    if (!(await until(startMsMax, () => isHealthy(place))))
      die(`nothing answers on ${urlOf(place)}`, `look at ${place.data}/log/serve.log`);
  }
  const { exitCode } = Bun.spawnSync([binary, "stop", "--all", "--data", place.data], {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  if (exitCode !== 0) process.exit(1);
}

function parse() {
  try {
    return parseArgs({
      options: {
        data: { type: "string" },
        // Known already; who repeats the options of scripts/up is not told off.
        port: { type: "string" },
        vms: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}`);
    process.exit(2);
  }
}
