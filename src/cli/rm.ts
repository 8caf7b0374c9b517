/** `holdfast rm`: deletes sandboxes and their disks. */
import { UsageError } from "./arguments.ts";
import { newKey } from "./client.ts";
import { clientCommand, print, printJson } from "./command.ts";
import { awaitPhase } from "./progress.ts";

const usage = `usage: holdfast rm NAME… [--no-wait] [-q] [--json]

  Ends what runs there and destroys the disk. There is no way back.
exit codes: 0 deleted · 1 refused · 2 usage · 4 API key`;

export const rm = clientCommand({
  usage,
  flags: { "no-wait": { kind: "switch" } },
  run: async ({ client, flags, words }) => {
    if (words.length === 0) throw new UsageError("NAME is missing");
    for (const name of words) {
      const wish = { param: { id: name }, header: newKey() };
      let { sandbox } = await (await client.sandboxes[":id"].$delete(wish)).json();
      const wait = { wanted: ["deleted" as const], silent: true };
      if (!flags["no-wait"]) sandbox = await awaitPhase(client, sandbox.id, wait);
      if (flags.json) printJson(sandbox);
      else print(flags.quiet ? sandbox.id : `${sandbox.name} is ${sandbox.phase}`);
    }
    return 0;
  },
});
