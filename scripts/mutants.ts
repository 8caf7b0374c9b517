/**
 * Breakages made on purpose, each of which a test or the simulator must notice. What is replaced
 * must stand in its file exactly once, so that no mutant outlives the code it breaks.
 */
export interface Mutant {
  /** What the broken appliance does. */
  readonly name: string;
  readonly file: string;
  readonly edits: readonly (readonly [string, string])[];
}

const mutant = (name: string, file: string, ...edits: [string, string][]): Mutant => ({
  name,
  file: `src/${file}.ts`,
  edits,
});

export const mutants: readonly Mutant[] = [
  mutant("acknowledges output before it is durable", "commands/intake", [
    "const endBytes = await appendOutput(",
    `for (const { offset, data } of chunks)
        void this.#acknowledge(commandId, offset + data.length);
      const endBytes = await appendOutput(`,
  ]),
  mutant("tells of a commit before it is settled", "db/settling", ["await this.#settle();", ""]),
  mutant("takes output behind a hole", "commands/output", [
    "if (chunk.offset > end) return undefined;",
    "",
  ]),
  mutant("stores output again that it has", "commands/output", [
    "const data = chunk.data.subarray(end - chunk.offset);",
    "const data = chunk.data;",
  ]),
  mutant("takes output of a command of another sandbox", "commands/intake", [
    "command.sandbox_id !== sandboxId || command.run === null",
    "command.id === sandboxId",
  ]),
  mutant("records an end before its output", "commands/conversation", [
    "await this.#intake.settled(message.command_id, message.output_bytes);",
    "",
  ]),
  mutant("believes an end whose output never came", "commands/intake", [
    "if (endBytes < bytes) throw hole(commandId);",
    "",
  ]),
  mutant("lets the guest forget an end before it is on record", "commands/conversation", [
    "await this.#record((tx) => recordEnd(tx, this.#report(message)));",
    "void this.#record((tx) => recordEnd(tx, this.#report(message)));",
  ]),
  mutant("sends a launch before its record", "commands/dictation", [
    `const recorded = await this.#ports.db.write((tx) => this.#recordSent(tx, command.id, bootId));
      if (!recorded) return;`,
    "void this.#ports.db.write((tx) => this.#recordSent(tx, command.id, bootId));",
  ]),
  mutant(
    "sends a command in whatever phase",
    "commands/dictation",
    [
      'command?.state !== "queued" || sandbox?.phase !== "running"',
      'command?.state !== "queued" || sandbox === undefined',
    ],
    ["if (runs) await", "await"],
  ),
  mutant("sends a command again to the next boot", "commands/ends", [
    'if (command.state === "launching") return',
    `if (command.state === "launching" && bootsAgain) return undefined;
  if (command.state === "launching") return`,
  ]),
  mutant("says of a command that was sent that it was not", "commands/ends", [
    'return { event: "untold", reason: "not_established" };',
    'return { event: "refused", reason: "start_failed" };',
  ]),
  mutant("drops what waits when the guest reboots", "commands/ends", [
    "if (bootsAgain) return undefined;",
    "",
  ]),
  mutant("takes a self-made end for an interruption", "commands/ends", [
    "if (signalled !== null && ours)",
    "if (ours)",
  ]),
  mutant("forgets a command's end when its VM ends", "sandboxes/observe", [
    `event: "vmEnded", reason, nowMs, changes });
  await ports.runEnded(tx, { sandbox, reason, nowMs, bootsAgain: false });`,
    'event: "vmEnded", reason, nowMs, changes });',
  ]),
  mutant("lets a guest report on commands of other sandboxes", "commands/reports", [
    "command?.sandbox_id === ref.sandbox && command.run === ref.run",
    "command !== undefined",
  ]),
  mutant("lets a guest change which boot it is", "commands/conversation", [
    "sandbox.guest_boot_id !== null && sandbox.guest_boot_id !== hello.guest_boot_id",
    "sandbox.id === hello.guest_boot_id",
  ]),
  mutant("runs a command that was killed before it was sent", "commands/kill", [
    'if (command.state === "queued")',
    'if (command.state === "running")',
  ]),
  mutant(
    "signals once and not again on the next channel",
    "commands/dictation",
    [
      "this.#signalled.add(kill_request);",
      "this.#signalled.add(kill_request);\n    await this.#ports.db.write((tx) => recordSaid(tx, command));",
    ],
    [
      "const empty = new Uint8Array();",
      `const recordSaid = async (tx: Tx, { id }: CommandRow) =>
  void (await tx.updateTable("commands").set({ kill_done: 1 }).where("id", "=", id).execute());
const empty = new Uint8Array();`,
    ],
  ),
  mutant("takes a piece of stdin twice", "commands/stdin", [
    "const fresh = data.subarray(endBytes - offset);",
    "const fresh = data;",
  ]),
  mutant("closes stdin before its last piece", "commands/dictation", [
    "command.stdin_closed === 1 && !(await this.#heldBehind(command_id, end))",
    "command.stdin_closed === 1",
  ]),
  mutant("drops stdin that the guest has not taken", "commands/store", [
    'row.fn<number>("length", ["data"])), "<=", offset))',
    'row.fn<number>("length", ["data"])), ">", offset))',
  ]),
  mutant("does not ask the guest to power off", "commands/dictation", [
    "if (stopping && !this.#poweredOff) {",
    "if (stopping && this.#poweredOff) {",
  ]),
  mutant("gives up a start without ending its VM", "sandboxes/start", [
    "await ports.vmm.kill(store.refOf(sandbox));",
    "",
  ]),
  mutant("counts no runs", "sandboxes/start", [
    "const run = sandbox.run + 1;",
    "const run = Math.max(1, sandbox.run);",
  ]),
  mutant("boots a run again that was up before", "sandboxes/start", [
    'if (sandbox.guest_boot_id !== null) return next("awaitGuest");',
    "",
  ]),
  mutant("makes a lost disk anew", "sandboxes/start", [
    "if (sandbox.disk_made) {",
    "if (sandbox.disk_made === 2) {",
  ]),
  mutant("starts without asking for room", "sandboxes/start", [
    "await checkRoomToStart(tx, ports, sandbox);",
    "",
  ]),
  mutant("frees the room of a sandbox before its VM has ended", "sandboxes/sandbox", [
    '[...phasesWithVm, "deleting"]',
    "phasesWithVm",
  ]),
  mutant("boots more VMs at once than there are slots", "sandboxes/start", [
    `if ((await countBooting(tx)) >= bootSlots)
      throw new Fault("unavailable", "another boot took the slot");`,
    "",
  ]),
  mutant("calls a VM running whose guest never answered", "sandboxes/start", [
    "if (sandbox.guest_boot_id !== null)\n    return done(",
    "if (sandbox.run > 0)\n    return done(",
  ]),
  mutant("stops without ending the VM", "sandboxes/stop", [
    "await ports.vmm.kill(store.refOf(sandbox));",
    "",
  ]),
  mutant("does not wait for a stopped guest's last words", "sandboxes/stop", [
    "if (ports.sightings.isListening(store.refOf(sandbox))) return wait(drainPollMs);",
    "",
  ]),
  mutant("does not wait for a dead guest's last words", "sandboxes/observe", [
    "if (draining && ports.sightings.isListening(ref)) continue;",
    "",
  ]),
  mutant("ends the wrong run", "sandboxes/observe", [
    "if (!sandbox || sandbox.run !== ref.run) return;",
    "if (!sandbox) return;",
  ]),
  mutant("records an end over a stop or a delete", "sandboxes/observe", [
    "if (!phasesObserved.some((phase) => phase === sandbox.phase)) return;",
    "",
  ]),
  mutant("lets a guest reboot for ever", "sandboxes/observe", [
    "if (earlier.length >= rebootsMax) return false;",
    "",
  ]),
  mutant("does not notice a silent guest", "sandboxes/observe", [
    "if (silentMs >= silenceMaxMs * driver.timeScale)",
    "if (silentMs < 0)",
  ]),
  mutant("does not notice a VM that its host halted", "sandboxes/observe", [
    'return (await vmm.resume(ref)) === "halted";',
    "await vmm.resume(ref);\n    return false;",
  ]),
  mutant("forgets a run that a boot in flight may still bring up", "sandboxes/observe", [
    "await ports.vmm.kill(ref);",
    'if (state === "alive") await ports.vmm.kill(ref);',
  ]),
  mutant("deletes without ending the VM", "sandboxes/delete", [
    "if (sandbox.run > 0) await ports.vmm.kill(store.refOf(sandbox));",
    "",
  ]),
  mutant("deletes and leaves the disk", "sandboxes/delete", [
    "await ports.disks.remove(subject);",
    "",
  ]),
  mutant("schedules no retry", "workflow/runner", [
    "const still = await db.write((tx) => store.scheduleRetry(tx, row, clock.now() + backoffMs));",
    "const still = backoffMs > 0;",
  ]),
  mutant("runs two steps of one subject at once", "workflow/runner", [
    "row.run_at_ms > nowMs || busy.has(row.subject)",
    "row.run_at_ms > nowMs",
  ]),
  mutant("records for a workflow that another took over", "workflow/store", [
    "if (present === undefined || present.finished_at_ms !== null) return;",
    "if (present === undefined) return;",
  ]),
  mutant("loses a wake that comes during a step", "workflow/store", [
    'outcome.kind === "wait" && !woken',
    'outcome.kind === "wait"',
  ]),
  mutant("never gives up", "workflow/runner", [
    "if (!givingUp && ports.clock.now() >= row.deadline_at_ms)",
    "if (!givingUp && row.deadline_at_ms < 0)",
  ]),
  mutant("tries again what no retry can mend", "workflow/runner", [
    "if (!error.retriable) return hop(workflow, row, problemOf(error));",
    "",
  ]),
  mutant("gives up giving up", "workflow/runner", [
    "if (givingUp) return undefined;",
    "if (givingUp) return { kind: 'done', write: undefined };",
  ]),
  mutant("tells a writer before the commit", "db/open", [
    "for (const job of jobs) tell.push(await runJob(tx, job));",
    "for (const job of jobs) (await runJob(tx, job))();",
  ]),
  mutant("keeps what a refused writer wrote", "db/open", ["await tx.all(undo, {});", ""]),
  mutant("stops listening where it cannot answer any more", "commands/conversation", [
    'await this.#say({ type: "forget"',
    'await this.#channel.send({ type: "forget"',
  ]),
  mutant("piles up acknowledgements for a guest that reads nothing", "commands/acknowledgements", [
    "this.#saying ??= this.#sayAll();",
    'this.#saying = this.#send({ type: "ack", command_id: commandId, offset });',
  ]),
  mutant("holds the room of what has no VM while it is deleted", "sandboxes/sandbox", [
    'export const withoutVm = "removing_disk"',
    'export const withoutVm = "deleted"',
  ]),
  mutant("believes stdin that nobody sent", "commands/reports", [
    "if (message.offset > (await stdinExtent(tx, command)).endBytes) return;",
    "",
  ]),
  mutant("forgets what has ended at once", "commands/retention", [
    "ports.clock.now() - ports.recordsKeptMs",
    "ports.clock.now()",
  ]),
  mutant("forgets nothing", "commands/retention", [
    "ports.clock.now() - ports.recordsKeptMs",
    "ports.clock.now() - 1_000 * ports.recordsKeptMs",
  ]),
  mutant("removes output that is still on record", "commands/retention", [
    "if (!known.has(id)) await",
    "await",
  ]),
  mutant("forgets a sandbox that left a disk", "commands/retention", [
    "ids.filter((id) => !left.has(id))",
    "ids.filter((id) => left.has(id) || true)",
  ]),
  mutant("forgets all that is old in one step", "commands/retention", [
    "const stepMax = 200;",
    "const stepMax = 100_000;",
  ]),
  mutant("keeps a command's key when it forgets the command", "db/migrations/0001", [
    "command_id text references commands (id) on delete cascade,",
    "command_id text,",
  ]),
  mutant("breaks with a guest that holds what was forgotten", "commands/intake", [
    "if (!command) return true;",
    "if (!command) throw foreign(id);",
  ]),
];
