/** Stops the appliance; with --vms stops every sandbox first, so that their work ends in order. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import {
  binaryOf,
  die,
  hasSystemd,
  isHealthy,
  type Place,
  say,
  unitPath,
  until,
  urlOf,
} from "./place.ts";
import { start, stopServe } from "./start.ts";

const startMsMax = 60_000;

const usage = `usage: scripts/down [--data DIR] [--port N] [--vms]

  --data DIR  the installation to stop (default /var/lib/holdfast)
  --vms       stop all sandboxes, too; without it, VMs and their commands run on

exit codes: 0 stopped · 1 something does not end · 2 usage
`;

const { values } = parse();
const data = values.data ?? "/var/lib/holdfast";
const place: Place = { data, port: Number(values.port ?? 8440) };

if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
if (values.vms) await stopVms();
if (hasSystemd() && existsSync(unitPath)) Bun.spawnSync(["systemctl", "disable", "holdfast"]);
await stopServe(place);
say(values.vms ? "stopped, with all VMs" : "stopped; VMs and their commands run on");

/** In order through the API, which is started for it where it does not run. */
async function stopVms(): Promise<void> {
  const binary = binaryOf(place);
  if (!existsSync(binary)) return;
  if (!(await isHealthy(place))) {
    say("not running: started to stop the VMs in order");
    start(place, true);
    if (!(await until(startMsMax, () => isHealthy(place))))
      die(`nothing answers on ${urlOf(place)}`, `look at ${place.data}/log/serve.log`);
  }
  const { exitCode } = Bun.spawnSync([binary, "stop", "--all", "--data", data], {
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
