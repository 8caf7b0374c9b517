/** A database in memory with one sandbox that runs, and commands in any state of theirs. */
import type { CommandRow } from "../src/commands/command.ts";
import { insertCommand } from "../src/commands/store.ts";
import { type Db, type OutputDb, openOutput, openState } from "../src/db/open.ts";
import { openBytes } from "../src/db/sqlite.ts";
import type { SandboxRow } from "../src/sandboxes/sandbox.ts";
import { insertSandbox } from "../src/sandboxes/store.ts";

export const bootId = "11111111-1111-4111-8111-111111111111";
export const ref = { sandbox: "sb_1", run: 1 };

const opening = { committed: () => {}, gather: async () => {} };

export async function openRecords(sandbox: Partial<SandboxRow> = {}): Promise<Db> {
  const db = openState({ sqlite: await openBytes(undefined), ...opening });
  await addSandbox(db, ref.sandbox);
  await change(db, sandbox);
  return db;
}

export async function openOutputs(gather = opening.gather): Promise<OutputDb> {
  return openOutput({ sqlite: await openBytes(undefined), ...opening, gather });
}

export function addSandbox(db: Db, id: string): Promise<void> {
  return db.write(async (tx) => {
    await insertSandbox(tx, {
      id,
      name: id.replace("_", "-"),
      size: "tiny",
      vcpus: 1,
      memory_bytes: 1,
      disk_bytes: 1,
      base_digest: "",
      base_name: "",
      base_built_at_ms: 0,
      labels: "{}",
      machine_id: "",
      created_at_ms: 0,
    });
    const running = { phase: "running", run: ref.run, guest_boot_id: bootId } as const;
    await tx.updateTable("sandboxes").set(running).where("id", "=", id).execute();
  });
}

/** Of the one sandbox. */
export async function change(db: Db, changes: Partial<SandboxRow>): Promise<void> {
  if (Object.keys(changes).length === 0) return;
  await db.write(async (tx) => {
    await tx.updateTable("sandboxes").set(changes).where("id", "=", ref.sandbox).execute();
  });
}

export function addCommand(db: Db, id: string, changes: Partial<CommandRow> = {}): Promise<void> {
  return db.write(async (tx) => {
    await insertCommand(tx, {
      id,
      sandbox_id: changes.sandbox_id ?? ref.sandbox,
      argv: '["true"]',
      cwd: null,
      env: "{}",
      user: "agent",
      timeout_ms: null,
      stdin: 1,
      accepted_by: "key_1",
      accepted_at_ms: 1,
    });
    await changeCommandRow(tx, id, changes);
  });
}

type Tx = Parameters<Parameters<Db["write"]>[0]>[0];

async function changeCommandRow(tx: Tx, id: string, changes: Partial<CommandRow>): Promise<void> {
  if (Object.keys(changes).length > 0)
    await tx.updateTable("commands").set(changes).where("id", "=", id).execute();
}

/** As a command is once it was sent to the guest of `ref`. */
export const sent: Partial<CommandRow> = { state: "running", guest_boot_id: bootId, run: ref.run };
