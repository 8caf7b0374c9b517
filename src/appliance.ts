/**
 * Puts the parts together. Nothing here is global, so that several appliances can live in one
 * process; this is the only file that names real implementations.
 */
import { totalmem } from "node:os";
import { join } from "node:path";
import { createApi } from "./api/app.ts";
import { purgeAnswers } from "./api/idempotency.ts";
import type { Api, ApiPorts, Build } from "./api/ports.ts";
import { converseWithAll } from "./commands/converse.ts";
import { endCommandsOf } from "./commands/ends.ts";
import type { CommandPorts } from "./commands/ports.ts";
import { forgetOldRecords } from "./commands/retention.ts";
import { Fault } from "./core/fault.ts";
import { dayMs, GiB, MiB } from "./core/units.ts";
import { type Opening, openOutput, openState } from "./db/open.ts";
import { openFile } from "./db/sqlite.ts";
import { openHost } from "./hosts/host.ts";
import { deleteSandbox } from "./sandboxes/delete.ts";
import { observeVms } from "./sandboxes/observe.ts";
import { Sightings } from "./sandboxes/sightings.ts";
import type { Limits, Size } from "./sandboxes/size.ts";
import { startSandbox } from "./sandboxes/start.ts";
import { stopSandbox } from "./sandboxes/stop.ts";
import { systemClock } from "./system/clock.ts";
import type { Log } from "./system/log.ts";
import { systemRandom } from "./system/random.ts";
import type { Settings } from "./system/settings.ts";
import { Signals } from "./system/signals.ts";
import { runWorkflows } from "./workflow/runner.ts";

/** Everything outside the nouns, real or simulated. */
export type Outside = Omit<CommandPorts, "runEnded" | "sightings">;

export const workflows = [startSandbox, stopSandbox, deleteSandbox] as const;

/** Goes on from whatever the database says, for as long as the process lives. */
export function startAppliance(outside: Outside): CommandPorts {
  const sightings = new Sightings(outside.clock);
  const ports: CommandPorts = { ...outside, sightings, runEnded: endCommandsOf };
  void runWorkflows(ports, workflows);
  void observeVms(ports);
  void converseWithAll(ports);
  void forgetOldRecords(ports);
  return ports;
}

export interface ApplianceOptions {
  /** A directory that only this process uses. */
  data: string;
  settings: Settings;
  log: Log;
  build: Build;
  onBug: (error: unknown) => void;
}

export interface Appliance {
  readonly api: Api;
  readonly ports: ApiPorts;
  /** Closes the databases; VMs and their commands run on. */
  close(): Promise<void>;
}

/** The real appliance of this machine, at work. */
export async function openAppliance(options: ApplianceOptions): Promise<Appliance> {
  const { data, settings, log, build, onBug } = options;
  const signals = new Signals(systemClock);
  const opening: Omit<Opening, "sqlite"> = {
    committed: (topics) => signals.notify(topics),
    gather: () => new Promise((resolve) => setImmediate(resolve)),
  };
  const db = openState({ sqlite: await openFile(join(data, "holdfast.db")), ...opening });
  const output = openOutput({ sqlite: await openFile(join(data, "output.db")), ...opening });
  const common = { clock: systemClock, random: systemRandom, log, signals, db, output };
  const [limits, sizes] = [limitsOf(settings), sizesOf(settings)];
  const machine = await openMachine(options);
  const host = await openHost(db, systemClock, systemRandom);
  const recordsKeptMs = settings.records.kept_days * dayMs;
  const commandPorts = startAppliance({ ...common, ...machine, limits, sizes, recordsKeptMs });
  const { default_base: defaultBase } = settings;
  const ports: ApiPorts = { ...commandPorts, host, build, defaultBase, onBug };
  void purgeAnswers(ports);
  const close = async (): Promise<void> => {
    await db.close();
    await output.close();
  };
  return { api: createApi(ports), ports, close };
}

type Machine = Pick<Outside, "vmm" | "driver" | "disks" | "images" | "guests">;

/** Until this build has a hypervisor driver, it keeps records and says that it starts nothing. */
async function openMachine(_: ApplianceOptions): Promise<Machine> {
  const missing = async (): Promise<never> => {
    throw new Fault("unavailable", "this build has no hypervisor driver", { code: "no_driver" });
  };
  const why = "this build has no hypervisor driver";
  return {
    driver: {
      driver: "qemu",
      acceleration: "emulated",
      why,
      timeScale: 10,
      bootSlots: 1,
      overheadBytes: 192 * MiB,
    },
    vmm: {
      describe: missing,
      boot: missing,
      look: missing,
      powerOff: missing,
      kill: missing,
      forget: missing,
      list: async () => [],
      console: missing,
    },
    disks: {
      look: missing,
      make: missing,
      pathOf: () => "",
      remove: missing,
      list: async () => [],
    },
    images: { bases: async () => [], bootFiles: missing },
    guests: { open: missing },
  };
}

function limitsOf({ limits }: Settings): Limits {
  return {
    sandboxesTotal: limits.sandboxes_total,
    sandboxesRunning: limits.sandboxes_running,
    vcpusRunning: limits.vcpus_running,
    memoryRunningBytes: limits.memory_running_gib * GiB,
    diskTotalBytes: limits.disk_total_gib * GiB,
    machineMemoryBytes: Math.max(0, totalmem() - limits.host_memory_gib * GiB),
  };
}

const sizesOf = ({ sizes }: Settings): Size[] =>
  sizes.map(({ name, vcpus, memory_mib, disk_gib }) => ({
    name,
    vcpus,
    memoryBytes: memory_mib * MiB,
    diskBytes: disk_gib * GiB,
  }));
