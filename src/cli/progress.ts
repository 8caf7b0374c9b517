/** Waiting for a sandbox's phase, with what happens meanwhile on stderr. */
import type { SandboxView } from "../api/sandbox-view.ts";
import type { Client } from "./client.ts";
import { note } from "./command.ts";

export interface Awaiting {
  wanted: readonly SandboxView["phase"][];
  silent: boolean;
}

const unsettled: readonly SandboxView["phase"][] = ["starting", "stopping", "deleting"];

/** Returns once the sandbox is in a wanted phase, or in one that leads nowhere by itself. */
export async function awaitPhase(
  client: Client,
  id: string,
  { wanted, silent }: Awaiting,
): Promise<SandboxView> {
  const settled = ["stopped", "running", "paused", "lost", "failed", "deleted"].join(",");
  let told = "";
  for (let wait = 0; ; wait = 5) {
    const query = { wait_for: settled, wait: String(wait) };
    const box = await (await client.sandboxes[":id"].$get({ param: { id }, query })).json();
    if (wanted.includes(box.phase) || !unsettled.includes(box.phase)) return box;
    if (!silent && box.phase_message !== told) note(`${box.name}: ${box.phase_message}`);
    told = box.phase_message;
  }
}
