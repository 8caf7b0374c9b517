/** What sandboxes need from outside. */
import type { Tx } from "../db/open.ts";
import type { Disks } from "../disk/disk.ts";
import type { Images } from "../images/images.ts";
import type { Random } from "../system/random.ts";
import type { Vmm, VmmDescription } from "../vmm/vmm.ts";
import type { RunnerPorts } from "../workflow/runner.ts";
import type { PhaseReason, SandboxRow } from "./sandbox.ts";
import type { Sightings } from "./sightings.ts";
import type { Limits, Size } from "./size.ts";

export interface SandboxPorts extends RunnerPorts {
  readonly random: Random;
  readonly vmm: Vmm;
  /** What the VMM said of itself when the appliance started. */
  readonly driver: VmmDescription;
  readonly disks: Disks;
  readonly images: Images;
  readonly limits: Limits;
  readonly sizes: readonly Size[];
  readonly sightings: Sightings;
  /** Told in the same transaction, because the commands end with their sandbox's run. */
  readonly runEnded: (tx: Tx, ended: RunEnd) => Promise<void>;
}

/** A run that was seen ended, or a start that was given up. */
export interface RunEnd {
  readonly sandbox: SandboxRow;
  readonly reason: PhaseReason;
  readonly nowMs: number;
  /** The guest boots again on its own: what waits in the queue goes on waiting. */
  readonly bootsAgain: boolean;
}
