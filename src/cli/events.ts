/** `holdfast events`: what happened, oldest first, and with -f what happens. */
import type { EventView } from "../api/events.ts";
import { clientCommand, note, print, printJson } from "./command.ts";

const usage = `usage: holdfast events [NAME] [-f] [--types T,T] [--json]

  NAME         one sandbox's
  -f           what happens from now on, until it is ended
  --types T,T  of: sandbox.created, sandbox.changed, sandbox.phase, command.state
exit codes: 0 · 1 refused · 2 usage · 4 API key`;

export const events = clientCommand({
  usage,
  flags: { follow: { kind: "switch", short: "f" }, types: { kind: "text" } },
  client: { patienceMs: 300_000, onLost: () => note("connection lost; trying again") },
  run: async ({ client, flags, words }) => {
    const [sandbox] = words;
    const filter = { ...(sandbox && { sandbox }), ...(flags.types && { types: flags.types }) };
    let after = flags.follow ? "latest" : undefined;
    while (true) {
      const from = after === undefined ? {} : { after };
      const query = { ...filter, ...from, limit: "100", wait: flags.follow ? "20" : "0" };
      const page = await (await client.events.$get({ query })).json();
      if (typeof page === "string" || !("data" in page)) return 1;
      if (page.missed) note("some events are not kept any more");
      for (const event of page.data)
        if (flags.json) printJson(event);
        else print(lineOf(event));
      after = page.next_after;
      if (!flags.follow && page.data.length === 0) return 0;
    }
  },
});

function lineOf({ at, type, sandbox_id, command_id, data }: EventView): string {
  const { name, phase, state, reason, exit_code, signal } = data;
  const what = [phase ?? state ?? name, reason, exit_code ?? signal].filter((each) => each != null);
  return [at, type, command_id ?? sandbox_id, ...what].join("  ");
}
