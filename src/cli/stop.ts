/** `holdfast stop`: stops sandboxes and tells how their work ended. */
import type { SandboxView } from "../api/sandbox-view.ts";
import { UsageError } from "./arguments.ts";
import { allSandboxes } from "./boxes.ts";
import { type Client, newKey } from "./client.ts";
import { clientCommand, note, print, printJson } from "./command.ts";
import { awaitPhase } from "./progress.ts";

const usage = `usage: holdfast stop NAME… [--no-wait] [-q] [--json]
       holdfast stop --all

  --all      every sandbox that has a VM
  --no-wait  return once it is under way
exit codes: 0 stopped · 1 refused · 2 usage · 4 API key`;

export const stop = clientCommand({
  usage,
  flags: { "no-wait": { kind: "switch" }, all: { kind: "switch" } },
  run: async ({ client, flags, words }) => {
    if (flags.all === words.length > 0) throw new UsageError("name sandboxes, or give --all");
    const names = flags.all ? await namesWithVm(client) : words;
    const silent = flags.json || flags.quiet;
    const asked = await Promise.all(names.map((name) => ask(client, name)));
    for (const { id } of asked) {
      const wait = { wanted: ["stopped" as const], silent };
      const param = { id };
      const box = flags["no-wait"]
        ? await (await client.sandboxes[":id"].$get({ param, query: {} })).json()
        : await awaitPhase(client, id, wait);
      tell(box, flags);
    }
    return 0;
  },
});

async function namesWithVm(client: Client): Promise<string[]> {
  const ids: string[] = [];
  const filter = { phase: "starting,running,paused,lost,stopping" };
  for await (const { id } of allSandboxes(client, filter)) ids.push(id);
  return ids;
}

async function ask(client: Client, name: string): Promise<SandboxView> {
  const wish = { param: { id: name }, header: newKey(), json: {} };
  return (await (await client.sandboxes[":id"].stop.$post(wish)).json()).sandbox;
}

function tell(box: SandboxView, flags: { json: boolean; quiet: boolean }): void {
  if (flags.json) printJson(box);
  else print(flags.quiet ? box.id : `${box.name} is ${box.phase}`);
  const outcome = box.last_stop?.work.outcome;
  if (!flags.json && box.phase === "stopped" && outcome !== undefined && outcome !== "ended")
    note(
      `${box.name}: its work was ${outcome === "killed" ? "killed after the time limit" : "ended unseen"}`,
    );
}
