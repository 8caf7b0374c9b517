/** All that happened in a world, in a few characters: equal for equal seeds, on any machine. */
import { createHash } from "node:crypto";
import type { World } from "./world.ts";

/** Every call, message, commit and mishap in order, then the records as they are now. */
export function traceOf(world: World): string {
  const hash = createHash("sha256");
  for (const line of world.journal) hash.update(`${line}\n`);
  for (const table of ["sandboxes", "commands", "workflows"])
    hash.update(JSON.stringify(world.look(`* from ${table} order by id`)));
  return hash.digest("hex").slice(0, 16);
}
