/** `holdfast start`: starts a sandbox and waits until it runs. */
import { newKey } from "./client.ts";
import { clientCommand, note, print, printJson, wordsOf } from "./command.ts";
import { awaitPhase } from "./progress.ts";

const usage = `usage: holdfast start NAME [--no-wait] [-q] [--json]

  --no-wait  return once it is under way
exit codes: 0 it runs · 1 refused or it failed · 2 usage · 4 API key`;

export const start = clientCommand({
  usage,
  flags: { "no-wait": { kind: "switch" } },
  run: async ({ client, flags, words }) => {
    const [id = ""] = wordsOf(words, "NAME");
    const asked = await client.sandboxes[":id"].start.$post({
      param: { id },
      header: newKey(),
      json: {},
    });
    let { sandbox } = await asked.json();
    const silent = flags.json || flags.quiet;
    if (!flags["no-wait"])
      sandbox = await awaitPhase(client, sandbox.id, { wanted: ["running"], silent });
    if (flags.json) printJson(sandbox);
    else print(flags.quiet ? sandbox.id : `${sandbox.name} is ${sandbox.phase}`);
    if (flags["no-wait"] || sandbox.phase === "running") return 0;
    note(`error: ${sandbox.phase_message} (${sandbox.phase_reason})`);
    return 1;
  },
});
