/** Ending a command on request. The wish is recorded first and sent until the guest part answers. */
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import type { Tx } from "../db/open.ts";
import type { SignalName } from "../guest/guest.ts";
import type { Clock } from "../system/clock.ts";
import type { Random } from "../system/random.ts";
import { type CommandRow, isFinal } from "./command.ts";
import { changeCommand, moveCommand } from "./store.ts";

export interface Kill {
  command: CommandRow;
  signal: SignalName;
  /** The API key's id. */
  by: string;
}

export interface KillPorts {
  readonly clock: Clock;
  readonly random: Random;
}

/** One that was not sent yet never runs. @throws Fault `conflict` it has ended. */
export async function requestKill(tx: Tx, ports: KillPorts, kill: Kill): Promise<void> {
  const { command, signal, by } = kill;
  if (isFinal(command.state))
    throw new Fault("conflict", `command "${command.id}" has ended: ${command.state}`, {
      code: "command_ended",
      details: { state: command.state },
    });
  const nowMs = ports.clock.now();
  const request = makeId("request", nowMs, ports.random.bytes(10));
  await changeCommand(tx, command, {
    kill_signal: signal,
    kill_by: by,
    kill_request: request,
    kill_done: 0,
  });
  if (command.state === "queued")
    await moveCommand(tx, { id: command.id, event: "drop", reason: "killed", nowMs });
}
