/** What must hold: at every instant, storm or not, and once the dust has settled. */
import { isFinal } from "../../src/commands/command.ts";
import { readOutput } from "../../src/commands/output.ts";
import { assert, Bug } from "../../src/core/assert.ts";
import { busyPhases, phasesWithVm } from "../../src/sandboxes/sandbox.ts";
import { outputOf, scriptOf } from "./guest.ts";
import type { World } from "./world.ts";

/** True at every instant. */
export async function checkAlways(world: World): Promise<void> {
  checkMachine(world);
  const version = `${world.life} ${world.commits} ${world.machine.changes}`;
  if (version === world.checked) return;
  world.checked = version;
  await checkSandboxes(world);
  await checkCommands(world);
}

function checkMachine({ machine }: World): void {
  const owners = new Set<string>();
  for (const { ref, ended } of machine.vms.values()) {
    if (ended) continue;
    assert(!owners.has(ref.sandbox), `${ref.sandbox} has two VMs on one disk`);
    owners.add(ref.sandbox);
  }
  for (const [command, times] of machine.executed)
    assert(times === 1, `${command} was executed ${times} times`);
}

async function checkSandboxes({ db, machine, ports }: World): Promise<void> {
  const rows = await db.read
    .selectFrom("sandboxes")
    .leftJoin("workflows", (join) =>
      join.onRef("workflows.subject", "=", "sandboxes.id").on("finished_at_ms", "is", null),
    )
    .select(["sandboxes.id", "phase", "run", "guest_boot_id", "memory_bytes", "workflows.name"])
    .execute();
  let memoryBytes = 0;
  for (const row of rows) {
    const busy = busyPhases.includes(row.phase);
    assert((row.name !== null) === busy, `${row.id} is ${row.phase}, workflow ${row.name}`);
    if (phasesWithVm.includes(row.phase)) memoryBytes += row.memory_bytes;
    const vm = machine.vms.get(`${row.id}/${row.run}`);
    if (row.phase === "running")
      assert(vm?.guest.bootId === row.guest_boot_id, `${row.id} runs, but nothing answered`);
    const over = row.phase === "stopped" || row.phase === "failed" || row.phase === "deleted";
    if (over) assert(machine.alive(row.id).length === 0, `${row.id} is ${row.phase} with a VM`);
    if (row.phase === "deleted") assert(!machine.disks.has(row.id), `${row.id} left its disk`);
  }
  assert(memoryBytes <= ports.limits.memoryRunningBytes, "more memory is promised than there is");
}

const everRan = ["running", "exited", "timed_out", "resource_exhausted"];

async function checkCommands({ db, machine, output }: World): Promise<void> {
  const rows = await db.read.selectFrom("commands").selectAll().execute();
  for (const { id, state, exit_code, argv, guest_boot_id } of rows) {
    const times = machine.executed.get(id) ?? 0;
    if (state === "queued" || state === "not_launched" || guest_boot_id === null)
      assert(times === 0, `${id} is ${state}, yet it was executed`);
    if (everRan.includes(state)) assert(times === 1, `${id} is ${state}, yet it never ran`);
    if (state !== "exited") continue;
    const script = scriptOf(JSON.parse(argv) as string[]);
    assert(exit_code === script.exitCode, `${id} ended with ${exit_code}`);
    const { parts } = await readOutput(output.read, id, { offset: 0, bytesMax: 1 << 20 });
    const bytes = Buffer.concat(parts.map((part) => (part.kind === "chunk" ? part.data : bad(id))));
    const expected = Buffer.from(outputOf(id, script.outputBytes));
    assert(
      bytes.equals(expected),
      `${id} wrote ${expected.length} bytes, ${bytes.length} are kept`,
    );
  }
}

function bad(id: string): never {
  throw new Error(`${id} has a gap`);
}

/** Whether `checkAtRest` would hold by now. */
export async function isAtRest(world: World): Promise<boolean> {
  try {
    await checkAtRest(world);
    return true;
  } catch (error) {
    if (error instanceof Bug) return false;
    throw error;
  }
}

/** True once the storm has passed. */
export async function checkAtRest(world: World): Promise<void> {
  const { db, machine } = world;
  const sandboxes = await db.read.selectFrom("sandboxes").selectAll().execute();
  for (const { id, phase } of sandboxes) {
    assert(!busyPhases.includes(phase), `${id} is still ${phase}`);
    assert(phase !== "lost", `${id} is still lost`);
    const expected = phase === "running" ? 1 : 0;
    assert(machine.alive(id).length === expected, `${id} is ${phase} with other VMs`);
  }
  for (const { id, state } of await db.read.selectFrom("commands").selectAll().execute())
    assert(isFinal(state), `${id} is still ${state}`);
}

/** Every command that was accepted is still on record. */
export async function checkRemembered(world: World, accepted: Iterable<string>): Promise<void> {
  const rows = await world.db.read.selectFrom("commands").select("id").execute();
  const known = new Set(rows.map(({ id }) => id));
  for (const id of accepted) assert(known.has(id), `${id} was accepted and forgotten`);
}
