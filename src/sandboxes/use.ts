/** How much of the host sandboxes have together: sums over the records. */
import type { Reader } from "../db/open.ts";
import { phasesHoldingRoom, withoutVm } from "./sandbox.ts";

export interface Use {
  sandboxes: number;
  vcpus: number;
  memoryBytes: number;
  diskBytes: number;
}

/** What all that exist have together. */
export const sumUse = (read: Reader): Promise<Use> =>
  summing(read).where("phase", "<>", "deleted").executeTakeFirstOrThrow();

/** What those that hold room have together: see `holdsRoom`. */
export const sumRoom = (read: Reader): Promise<Use> =>
  summing(read)
    .where("phase", "in", phasesHoldingRoom)
    .where("phase_reason", "<>", withoutVm)
    .executeTakeFirstOrThrow();

const summing = (read: Reader) =>
  read
    .selectFrom("sandboxes")
    .select((row) => [
      row.fn.countAll<number>().as("sandboxes"),
      row.fn.coalesce(row.fn.sum<number>("vcpus"), row.lit(0)).as("vcpus"),
      row.fn.coalesce(row.fn.sum<number>("memory_bytes"), row.lit(0)).as("memoryBytes"),
      row.fn.coalesce(row.fn.sum<number>("disk_bytes"), row.lit(0)).as("diskBytes"),
    ]);

/** Boots under way: a VM was started whose guest part has not answered. */
export async function countBooting(read: Reader): Promise<number> {
  const { count } = await read
    .selectFrom("sandboxes")
    .select((row) => row.fn.countAll<number>().as("count"))
    .where("phase", "=", "starting")
    .where("phase_reason", "=", "booting")
    .executeTakeFirstOrThrow();
  return count;
}
