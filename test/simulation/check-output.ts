/** Output and stdin on record, against the bytes that were really written and read. */
import type { CommandRow } from "../../src/commands/command.ts";
import { readOutput } from "../../src/commands/output.ts";
import { assert } from "../../src/core/assert.ts";
import type { Stdin } from "./life.ts";
import type { World } from "./world.ts";

/** States that promise that all output is on record. */
const whole = ["exited", "timed_out", "launch_failed"];

export async function checkOutput(world: World, { id, state }: CommandRow): Promise<void> {
  const written = world.machine.deeds.writtenBy(id);
  const kept = await readAll(world, id);
  assert(kept.length <= written.length, `${id} wrote ${written.length}, ${kept.length} are kept`);
  assert(kept.equals(written.subarray(0, kept.length)), `${id}: other bytes are kept than written`);
  if (whole.includes(state))
    assert(kept.length === written.length, `${id} is ${state} with ${kept.length} bytes`);
}

/** In pages, as a client reads. A gap or a hole fails. */
export async function readAll({ output }: World, id: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let at = 0, more = true; more; ) {
    const page = await readOutput(output.read, id, { offset: at, bytesMax: 100_000 });
    for (const part of page.parts) {
      assert(part.kind === "chunk" && part.offset === at, `${id} has a hole at ${at}`);
      chunks.push(part.data);
      at += part.data.length;
    }
    assert(page.end === at, `${id}: a page ends elsewhere than its parts`);
    ({ more } = page);
  }
  return Buffer.concat(chunks);
}

/** A program never reads other stdin than was accepted, and all of it before its end. */
export function checkStdin({ machine }: World, id: string, { taken, possible }: Stdin): void {
  const read = machine.deeds.readBy(id);
  assert(read.length <= possible.length, `${id} read more than was sent`);
  assert(read.equals(possible.subarray(0, read.length)), `${id} read other bytes than were sent`);
  // Only one that copies waits for the end of its stdin.
  if (machine.deeds.ends.get(id)?.kind === "exited" && machine.deeds.copied.has(id))
    assert(read.length >= taken.length, `${id} ended before all of its stdin`);
}
