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
import { dayMs, GiB, KiB, MiB } from "./core/units.ts";
import { gatherTurns, type Opening, openOutput, openState } from "./db/open.ts";
import { laterSync, openFile, type Pages } from "./db/sqlite.ts";
import { rawDisks } from "./disk/raw.ts";
import { SocketGuests } from "./guest/channel.ts";
import type { Host } from "./hosts/host.ts";
import { openHost } from "./hosts/open.ts";
import { ImageStore } from "./images/store.ts";
import { deleteSandbox } from "./sandboxes/delete.ts";
import { observeVms } from "./sandboxes/observe.ts";
import { Sightings } from "./sandboxes/sightings.ts";
import type { Limits, Size } from "./sandboxes/size.ts";
import { startSandbox } from "./sandboxes/start.ts";
import { stopSandbox } from "./sandboxes/stop.ts";
import { systemClock } from "./system/clock.ts";
import type { Log } from "./system/log.ts";
import { volatileDirectory } from "./system/process.ts";
import { systemRandom } from "./system/random.ts";
import type { Settings } from "./system/settings.ts";
import { Signals } from "./system/signals.ts";
import { absentVmm } from "./vmm/absent.ts";
import { openQemu } from "./vmm/qemu/open.ts";
import type { Vmm, VmRef } from "./vmm/vmm.ts";
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

/** The most that SQLite allows: rows are up to 256 KiB long, and few pages are written faster. */
const outputPages: Pages = { pageBytes: 64 * KiB, logBytes: 64 * MiB, sync: "later" };

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
}

/** The real appliance of this machine, at work. */
export async function openAppliance(options: ApplianceOptions): Promise<Appliance> {
  const { data, settings, log, build, onBug } = options;
  const signals = new Signals(systemClock);
  const opening: Omit<Opening, "sqlite"> = {
    committed: (topics) => signals.notify(topics),
    gather: gatherTurns,
  };
  const db = openState({ sqlite: await openFile(join(data, "holdfast.db")), ...opening });
  const outputPath = join(data, "output.db");
  const output = openOutput({
    sqlite: await openFile(outputPath, outputPages),
    ...opening,
    settle: laterSync(outputPath),
  });
  const common = { clock: systemClock, random: systemRandom, log, signals, db, output };
  const [limits, sizes] = [limitsOf(settings), sizesOf(settings)];
  const host = await openHost(db, systemClock, systemRandom);
  const machine = await openMachine(options, host);
  const recordsKeptMs = settings.records.kept_days * dayMs;
  const commandPorts = startAppliance({ ...common, ...machine, limits, sizes, recordsKeptMs });
  const { default_base: defaultBase } = settings;
  const ports: ApiPorts = { ...commandPorts, host, build, defaultBase, onBug };
  void purgeAnswers(ports);
  return { api: createApi(ports), ports };
}

type Machine = Pick<Outside, "vmm" | "driver" | "disks" | "images" | "guests">;

/** The hypervisor, disks and images of this machine. VMs that run are found again, never ended. */
async function openMachine({ data, log }: ApplianceOptions, host: Host): Promise<Machine> {
  const images = new ImageStore(join(data, "images"));
  const { vmm, guestPathOf } = await openVmm(images, host, log);
  const guests = new SocketGuests({
    pathOf: guestPathOf,
    clock: systemClock,
    random: systemRandom,
  });
  const disks = rawDisks(join(data, "disks"));
  return { vmm, driver: await vmm.describe(), disks, images, guests };
}

interface OpenedVmm {
  vmm: Vmm;
  guestPathOf: (ref: VmRef) => string;
}

/** Where there is no hypervisor, records can still be read. */
async function openVmm(images: ImageStore, host: Host, log: Log): Promise<OpenedVmm> {
  const boot = images.currentBoot() === undefined ? undefined : await images.bootFiles();
  const runRoot = join(volatileDirectory(), "holdfast", host.id.slice(-runRootLetters));
  const common = { clock: systemClock, log, installation: host.id };
  try {
    const vmm = await openQemu({ ...common, runRoot, boot });
    return { vmm, guestPathOf: (ref) => vmm.guestPathOf(ref) };
  } catch (error) {
    if (!(error instanceof Fault) || error.kind !== "unavailable") throw error;
    log.error("no VM can be started", error);
    return { vmm: absentVmm(error.message), guestPathOf: () => "" };
  }
}

/** Sockets' paths are short; the rest of the id is on each VM's command line. */
const runRootLetters = 10;

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
