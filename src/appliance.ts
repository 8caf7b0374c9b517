/**
 * Puts the parts together. Nothing here is global, so that several appliances can live in one
 * process; this is the only file that names real implementations.
 */
import { converseWithAll } from "./commands/converse.ts";
import { endCommandsOf } from "./commands/ends.ts";
import type { CommandPorts } from "./commands/ports.ts";
import { deleteSandbox } from "./sandboxes/delete.ts";
import { observeVms } from "./sandboxes/observe.ts";
import { Sightings } from "./sandboxes/sightings.ts";
import { startSandbox } from "./sandboxes/start.ts";
import { stopSandbox } from "./sandboxes/stop.ts";
import { runWorkflows } from "./workflow/runner.ts";

/** Everything outside the nouns, real or simulated. */
export type Outside = Omit<CommandPorts, "runEnded" | "sightings">;

export const workflows = [startSandbox, stopSandbox, deleteSandbox];

/** Goes on from whatever the database says, for as long as the process lives. */
export function startAppliance(outside: Outside): CommandPorts {
  const sightings = new Sightings(outside.clock);
  const ports: CommandPorts = { ...outside, sightings, runEnded: endCommandsOf };
  void runWorkflows(ports, workflows);
  void observeVms(ports);
  void converseWithAll(ports);
  return ports;
}
