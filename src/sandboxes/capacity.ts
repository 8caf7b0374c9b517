/** Whether one more fits. Always asked in the transaction that takes the room. */
import { Fault } from "../core/fault.ts";
import type { Tx } from "../db/open.ts";
import type { VmmDescription } from "../vmm/vmm.ts";
import type { SandboxRow } from "./sandbox.ts";
import type { Limits, Size } from "./size.ts";
import { sumRoom, sumUse, type Use } from "./use.ts";

interface Quota {
  metric:
    | "sandboxes.running"
    | "sandboxes.total"
    | "vcpus.running"
    | "memory.running"
    | "disk.total";
  limit: number;
  used: number;
  wanted: number;
  clears_when: string;
}

/** @throws Fault `quota`. */
export async function checkRoomToCreate(tx: Tx, limits: Limits, size: Size): Promise<void> {
  const used = await sumUse(tx);
  const clears_when = "a sandbox is deleted";
  refuseOver(used, [
    {
      metric: "sandboxes.total",
      limit: limits.sandboxesTotal,
      used: used.sandboxes,
      wanted: 1,
      clears_when,
    },
    {
      metric: "disk.total",
      limit: limits.diskTotalBytes,
      used: used.diskBytes,
      wanted: size.diskBytes,
      clears_when,
    },
  ]);
}

interface RoomPorts {
  readonly limits: Limits;
  readonly driver: VmmDescription;
}

/** @throws Fault `quota` a limit the operator set; `full` the machine itself has no room. */
export async function checkRoomToStart(
  tx: Tx,
  { limits, driver }: RoomPorts,
  sandbox: Pick<SandboxRow, "vcpus" | "memory_bytes">,
): Promise<void> {
  const used = await sumRoom(tx);
  const clears_when = "a running sandbox stops";
  const { sandboxes, vcpus, memoryBytes } = used;
  refuseOver(used, [
    {
      metric: "sandboxes.running",
      limit: limits.sandboxesRunning,
      used: sandboxes,
      wanted: 1,
      clears_when,
    },
    {
      metric: "vcpus.running",
      limit: limits.vcpusRunning,
      used: vcpus,
      wanted: sandbox.vcpus,
      clears_when,
    },
    {
      metric: "memory.running",
      limit: limits.memoryRunningBytes,
      used: memoryBytes,
      wanted: sandbox.memory_bytes,
      clears_when,
    },
  ]);
  refuseFullMachine(used, { limits, driver }, sandbox.memory_bytes);
}

function refuseOver(use: Use, quotas: readonly Quota[]): void {
  for (const { wanted, ...quota } of quotas) {
    if (quota.used + wanted <= quota.limit) continue;
    throw new Fault(
      "quota",
      `${quota.metric} would be ${quota.used + wanted}, over its limit of ${quota.limit}`,
      {
        code: "quota_exceeded",
        hint: `wait until ${quota.clears_when}, or raise the limit in the settings`,
        details: { quota: { ...quota, used_by: { sandboxes: use.sandboxes } } },
        retryAfterSeconds: 30,
      },
    );
  }
}

function refuseFullMachine(used: Use, { limits, driver }: RoomPorts, memoryBytes: number): void {
  const { machineMemoryBytes } = limits;
  const { overheadBytes } = driver;
  const usedBytes = used.memoryBytes + used.sandboxes * overheadBytes;
  const wantedBytes = memoryBytes + overheadBytes;
  if (usedBytes + wantedBytes <= machineMemoryBytes) return;
  throw new Fault("full", "this host has no memory left for another VM", {
    code: "capacity_exceeded",
    hint: "stop a sandbox, or choose a smaller size",
    details: {
      memory: { limit_bytes: machineMemoryBytes, used_bytes: usedBytes, wanted_bytes: wantedBytes },
    },
    retryAfterSeconds: 30,
  });
}
