/**
 * What the host may say to a guest part, and when: nothing before it is on record. Looked at when
 * the guest part hears it, because what it is told to drop is gone from then on.
 */

import type { CommandRow } from "../../src/commands/command.ts";
import { isFinal } from "../../src/commands/command.ts";
import type { HostMessage } from "../../src/guest/guest.ts";
import type { SimulatedVm } from "./machine.ts";
import type { World } from "./world.ts";

/** Why it may not be said now; undefined: it may. */
export function forbidden(world: World, vm: SimulatedVm, message: HostMessage): string | undefined {
  if (message.type === "ping" || message.type === "hello") return undefined;
  if (message.type === "power_off") {
    const [sandbox] = world.look<{ phase: string }>(
      "phase from sandboxes where id = ?",
      vm.ref.sandbox,
    );
    return sandbox?.phase === "running" ? "power_off to one that should run" : undefined;
  }
  if (message.type !== "launch" && world.machine.hostile.has(vm.ref.sandbox)) return undefined;
  const { command_id: id, type } = message;
  const [row] = world.look<CommandRow>("* from commands where id = ?", id);
  // What ended long ago has left the records, and its guest may not have heard of it yet.
  const isOld = world.machine.deeds.ends.has(id) && (type === "forget" || type === "ack");
  if (!row) return isOld ? undefined : `${type} of a command that is not on record`;
  if (message.type === "launch") {
    const [sandbox] = world.look<{ phase: string }>(
      "phase from sandboxes where id = ?",
      vm.ref.sandbox,
    );
    if (sandbox?.phase === "starting") return `${id} was sent before its sandbox runs`;
    const sent = row.guest_boot_id === message.guest_boot_id && row.run === vm.ref.run;
    return sent && row.state !== "queued" ? undefined : `${id} was sent before its record said so`;
  }
  if (message.type === "ack" && world.durableBytes(id) < message.offset)
    return `${id}: ${message.offset} bytes acknowledged, ${world.durableBytes(id)} durable`;
  if (message.type === "forget") {
    if (!isFinal(row.state)) return `${id} is to be forgotten, its end is not on record`;
    const bytes = vm.guest.commands.get(id)?.bytes ?? 0;
    if (world.durableBytes(id) < bytes) return `${id} is to be forgotten before its output`;
  }
  if (message.type === "signal" && row.kill_request === null)
    return `${id} is signalled, and nobody asked for it`;
  return undefined;
}
