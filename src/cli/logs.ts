/** `holdfast logs`: what a command wrote. */
import type { Client } from "./client.ts";
import { clientCommand, note, wordsOf } from "./command.ts";
import { exitCodeOf, exitCodesText, exitUnsure, verdictOf, writeOutput } from "./follow.ts";

const usage = `usage: holdfast logs [-f] CMD|NAME [--json]

  A sandbox's name means its newest command.
  -f  follow until the command ends, and exit as it did
with -f ${exitCodesText}`;

export const logs = clientCommand({
  usage,
  whenMute: exitUnsure,
  flags: { follow: { kind: "switch", short: "f" } },
  client: { patienceMs: 300_000, onLost: () => note("connection lost; trying again") },
  run: async ({ client, flags, words }) => {
    const [what = ""] = wordsOf(words, "CMD or NAME");
    const id = what.startsWith("cmd_") ? what : await newestOf(client, what);
    if (id === undefined) {
      note(`${what} has no command yet`);
      return 1;
    }
    await writeOutput(client, id, { live: flags.follow, json: flags.json });
    if (!flags.follow) return 0;
    const query = { wait: "25" };
    const ended = await (await client.commands[":id"].$get({ param: { id }, query })).json();
    const verdict = verdictOf(ended);
    if (verdict !== undefined) note(verdict);
    return exitCodeOf(ended);
  },
});

async function newestOf(client: Client, name: string): Promise<string | undefined> {
  const query = { limit: "1" };
  const page = await client.sent[":id"].commands.$get({ param: { id: name }, query });
  return (await page.json()).data[0]?.id;
}
