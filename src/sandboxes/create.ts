/** Create: a row, and nothing else. A new sandbox is stopped and uses no compute. */
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import type { Tx } from "../db/open.ts";
import type { Base } from "../images/images.ts";
import { checkRoomToCreate } from "./capacity.ts";
import type { SandboxPorts } from "./ports.ts";
import { defaultSizeName, type Size } from "./size.ts";
import { type BusySandbox, findByName, getBusy, insertSandbox } from "./store.ts";

export interface Creation {
  /** undefined: one is made from the id. */
  name: string | undefined;
  /** undefined: the default size. */
  size: string | undefined;
  base: Base;
  labels: Readonly<Record<string, string>>;
}

export type CreatePorts = Pick<SandboxPorts, "clock" | "random" | "limits" | "sizes">;

/**
 * @throws Fault `invalid` no such size, base too large for it; `conflict` the name is taken;
 *   `quota` no room.
 */
export async function createSandbox(
  tx: Tx,
  ports: CreatePorts,
  creation: Creation,
): Promise<BusySandbox> {
  const size = chooseSize(ports.sizes, creation);
  await checkRoomToCreate(tx, ports.limits, size);
  const nowMs = ports.clock.now();
  const id = makeId("sandbox", nowMs, ports.random.bytes(10));
  const name = creation.name ?? `box-${id.slice(-8)}`;
  await refuseTakenName(tx, name);
  await insertSandbox(tx, {
    id,
    name,
    size: size.name,
    vcpus: size.vcpus,
    memory_bytes: size.memoryBytes,
    disk_bytes: size.diskBytes,
    base_digest: creation.base.digest,
    base_name: creation.base.name,
    base_built_at_ms: creation.base.builtAtMs,
    labels: JSON.stringify(creation.labels),
    machine_id: Buffer.from(ports.random.bytes(16)).toString("hex"),
    created_at_ms: nowMs,
  });
  return getBusy(tx, id);
}

/** @throws Fault `conflict` another sandbox that is not deleted has the name. */
export async function refuseTakenName(tx: Tx, name: string): Promise<void> {
  const holder = await findByName(tx, name);
  if (!holder) return;
  throw new Fault("conflict", `the name "${name}" is taken`, {
    code: "name_taken",
    hint: "choose another name, or delete the sandbox that has it",
    details: { sandbox_id: holder.id },
  });
}

function chooseSize(sizes: readonly Size[], { size: name, base }: Creation): Size {
  const wanted = name ?? defaultSizeName;
  const size = sizes.find((each) => each.name === wanted) ?? (name ? undefined : sizes[0]);
  if (!size)
    throw new Fault("invalid", `no size "${wanted}"`, {
      code: "unknown_size",
      hint: `choose one of: ${sizes.map((each) => each.name).join(", ")}`,
    });
  if (size.diskBytes < base.sizeBytes)
    throw new Fault("invalid", `the base "${base.name}" does not fit on a ${size.name} disk`, {
      code: "disk_too_small",
      hint: "choose a larger size",
    });
  return size;
}
