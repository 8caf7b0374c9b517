/** Sizes a sandbox can have, and what all sandboxes of this host may use together. */
import { GiB, MiB } from "../core/units.ts";

export interface Size {
  readonly name: string;
  readonly vcpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export const defaultSizes: readonly Size[] = [
  { name: "tiny", vcpus: 1, memoryBytes: 256 * MiB, diskBytes: 4 * GiB },
  { name: "small", vcpus: 1, memoryBytes: 1 * GiB, diskBytes: 10 * GiB },
  { name: "medium", vcpus: 2, memoryBytes: 4 * GiB, diskBytes: 20 * GiB },
  { name: "large", vcpus: 4, memoryBytes: 8 * GiB, diskBytes: 40 * GiB },
];
export const defaultSizeName = "small";

/** Quotas the operator set, and what the machine has. Checked where the row is written. */
export interface Limits {
  readonly sandboxesTotal: number;
  readonly sandboxesRunning: number;
  readonly vcpusRunning: number;
  readonly memoryRunningBytes: number;
  readonly diskTotalBytes: number;
  /** Memory of the machine that VMs may have together, with what each costs beside its RAM. */
  readonly machineMemoryBytes: number;
}
