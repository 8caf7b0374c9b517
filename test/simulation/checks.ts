/** What must hold: at every instant, storm or not, and once the dust has settled. */
import {
  type CommandRow,
  commandMoves,
  isFinal,
  stateReasons,
} from "../../src/commands/command.ts";
import { assert, Bug } from "../../src/core/assert.ts";
import type { Moves } from "../../src/core/moves.ts";
import {
  busyPhases,
  holdsRoom,
  phaseReasons,
  type SandboxRow,
  sandboxMoves,
} from "../../src/sandboxes/sandbox.ts";
import { checkOutput } from "./check-output.ts";
import { driver, limits } from "./outside.ts";
import type { World } from "./world.ts";

type Sandbox = SandboxRow & { workflow: string | null; step: string | null };

export class Checks {
  readonly #world: World;
  /** What was looked at already. */
  #version = "";
  readonly #phases = new Map<string, string>();
  readonly #states = new Map<string, string>();
  /** Final rows, as they were when they became final. */
  readonly #final = new Map<string, string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** True at every instant. */
  async always(): Promise<void> {
    const world = this.#world;
    assert(world.violations.length === 0, world.violations[0] ?? "");
    const version = `${world.life} ${world.commits} ${world.machine.changes}`;
    if (version === this.#version) return;
    this.#version = version;
    checkMachine(world);
    const sandboxes = world.look<Sandbox>(
      "s.*, w.name as workflow, w.step from sandboxes s left join workflows w " +
        "on w.subject = s.id and w.finished_at_ms is null",
    );
    for (const sandbox of sandboxes) this.#checkSandbox(sandbox);
    checkEvents(world);
    checkUse(world, sandboxes);
    for (const command of world.look<CommandRow>("* from commands"))
      await this.#checkCommand(command);
  }

  #checkSandbox(row: Sandbox): void {
    const { machine, steps } = this.#world;
    const { id, phase } = row;
    assert(row.phase_reason in phaseReasons, `${id} is ${phase} for ${row.phase_reason}`);
    checkMoves(sandboxMoves, id, { from: this.#phases.get(id) ?? "stopped", to: phase });
    this.#phases.set(id, phase);
    if (row.workflow) steps.add(`${row.workflow}.${row.step}`);
    const busy = busyPhases.includes(phase);
    assert((row.workflow !== null) === busy, `${id} is ${phase}, workflow ${row.workflow}`);
    const vm = machine.vms.get(`${id}/${row.run}`);
    if (phase === "running" && vm && !machine.hostile.has(id))
      assert(vm.guest.bootId === row.guest_boot_id, `${id} runs, but that boot never answered`);
    const alive = machine.alive(id).length;
    if (["stopped", "failed", "deleted"].includes(phase))
      assert(alive === 0, `${id} is ${phase} with a VM`);
    assert(alive === 0 || row.disk_made === 1, `${id} has a VM and no disk on record`);
    // A copy still under way when its sandbox is deleted may yet appear; the sweep removes it.
    const going = phase === "deleting" || phase === "deleted";
    assert(going || (machine.made.get(id) ?? 0) <= 1, `the disk of ${id} was made twice`);
  }

  async #checkCommand(row: CommandRow): Promise<void> {
    const { machine } = this.#world;
    const { id, state } = row;
    assert(row.state_reason in stateReasons, `${id} is ${state} for ${row.state_reason}`);
    const times = machine.executed.get(id) ?? 0;
    if (state === "queued" || state === "not_launched" || state === "launch_failed")
      assert(times === 0 || machine.hostile.has(row.sandbox_id), `${id} is ${state}, yet it ran`);
    const text = JSON.stringify(row);
    if (this.#final.get(id) === text) return;
    assert(!this.#final.has(id), `${id} has ended, and its record changed`);
    checkMoves(commandMoves, id, { from: this.#states.get(id) ?? "queued", to: state });
    this.#states.set(id, state);
    if (isFinal(state)) this.#final.set(id, text);
    assert(isFinal(state) === (row.ended_at_ms !== null), `${id} is ${state}, and its time?`);
    if (machine.hostile.has(row.sandbox_id)) return;
    checkEnd(this.#world, row);
    await checkOutput(this.#world, row);
  }

  /** True once the storm has passed. */
  async atRest(): Promise<void> {
    const { machine } = this.#world;
    const sandboxes = this.#world.look<SandboxRow>("* from sandboxes");
    for (const { id, phase } of sandboxes) {
      assert(!busyPhases.includes(phase), `${id} is still ${phase}`);
      assert(phase !== "lost", `${id} is still lost`);
      const expected = phase === "running" ? 1 : 0;
      assert(machine.alive(id).length === expected, `${id} is ${phase} with other VMs`);
      assert(phase !== "deleted" || !machine.disks.has(id), `${id} left its disk`);
    }
    for (const { id, state } of this.#world.look<CommandRow>("* from commands"))
      assert(isFinal(state), `${id} is still ${state}`);
  }

  async isAtRest(): Promise<boolean> {
    try {
      await this.atRest();
      return true;
    } catch (error) {
      if (error instanceof Bug) return false;
      throw error;
    }
  }

  /** Every command that was accepted is still on record. */
  remembers(accepted: Iterable<string>): void {
    const known = new Set(this.#world.look<{ id: string }>("id from commands").map(({ id }) => id));
    for (const id of accepted) assert(known.has(id), `${id} was accepted and forgotten`);
  }
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
  for (const [command, boots] of machine.deeds.launchedIn)
    assert(boots.size === 1, `${command} was sent to ${boots.size} boots`);
}

/** The newest event of each thing tells what it is: they were written together. */
function checkEvents(world: World): void {
  const behind = world.look<{ id: string }>(
    "s.id from sandboxes s join events e on e.seq = (select max(seq) from events " +
      "where sandbox_id = s.id and type = 'sandbox.phase') " +
      "where json_extract(e.data, '$.phase') <> s.phase",
  );
  assert(behind.length === 0, `the events of ${behind[0]?.id} tell another phase`);
  // Events leave the records with what they tell of, each by its own age.
  const ends = world.look<{ id: string; sandbox_id: string }>(
    "c.id, c.sandbox_id from commands c " +
      "where c.ended_at_ms > (select min(at_ms) from events) and (select count(*) from events e " +
      "where e.command_id = c.id and json_extract(e.data, '$.state') = c.state) <> 1",
  );
  const untold = ends.filter(({ sandbox_id }) => !world.machine.hostile.has(sandbox_id));
  assert(untold.length === 0, `the end of ${untold[0]?.id} was not told once`);
}

function checkUse({ machine }: World, sandboxes: readonly Sandbox[]): void {
  const alive = [...machine.vms.values()].filter(({ ended }) => !ended).length;
  assert(alive <= limits.sandboxesRunning, "more VMs run than may");
  const holding = sandboxes.filter(holdsRoom);
  const memory = holding.reduce((sum, { memory_bytes }) => sum + memory_bytes, 0);
  const overhead = holding.length * driver.overheadBytes;
  assert(memory <= limits.memoryRunningBytes, "more memory is promised than the quota has");
  assert(memory + overhead <= limits.machineMemoryBytes, "more memory than the machine has");
  assert(holding.length <= limits.sandboxesRunning, "more sandboxes run than may");
  const booting = sandboxes.filter(
    ({ phase, phase_reason }) => phase === "starting" && phase_reason === "booting",
  );
  assert(booting.length <= driver.bootSlots, "more boots are under way than there are slots");
}

/** Several moves may lie between two looks; none may lie outside the table. */
function checkMoves(moves: Moves, id: string, { from, to }: { from: string; to: string }): void {
  const reached = new Set([from]);
  for (const state of reached)
    for (const after of Object.values(moves[state] ?? {})) reached.add(after);
  assert(reached.has(to), `${id} went from ${from} to ${to}`);
}

const ranStates = ["running", "exited", "timed_out", "resource_exhausted", "interrupted"];

/** What is on record against what the program did. */
function checkEnd({ machine }: World, row: CommandRow): void {
  const { id, state } = row;
  const end = machine.deeds.ends.get(id);
  const ran = (machine.executed.get(id) ?? 0) === 1;
  if (row.guest_boot_id === null) assert(!ran, `${id} was not sent, yet it ran`);
  if (ranStates.includes(state)) assert(ran, `${id} is ${state}, yet it never ran`);
  if (state === "exited" && end?.kind === "exited")
    assert(row.exit_code === end.exit_code, `${id} ended with ${end.exit_code}`);
  if (state === "exited" || state === "timed_out" || state === "launch_failed")
    assert(end?.kind === state, `${id} is ${state}, and really ${end?.kind}`);
  if (state === "interrupted" && row.state_reason === "killed")
    assert(row.kill_by !== null && end?.kind === "signal", `${id} was not killed`);
}
