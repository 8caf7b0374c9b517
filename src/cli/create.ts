/** `holdfast create`: a new sandbox, stopped unless told. */

import { UsageError } from "./arguments.ts";
import { newKey } from "./client.ts";
import { clientCommand, pairsOf, print, printJson } from "./command.ts";
import { awaitPhase } from "./progress.ts";

const usage = `usage: holdfast create [NAME] [--size SIZE] [--base BASE] [-l NAME=VALUE]… [--start] [-q] [--json]

  --size   holdfast api GET /v1/sizes lists them
  --base   a base's name or digest; without it the default base
  --start  start it and wait until it runs
exit codes: 0 · 1 refused or the start failed · 2 usage · 4 API key`;

export const create = clientCommand({
  usage,
  flags: {
    size: { kind: "text" },
    base: { kind: "text" },
    label: { kind: "list", short: "l" },
    start: { kind: "switch" },
  },
  run: async ({ client, flags, words }) => {
    const [name, ...others] = words;
    if (others.length > 0) throw new UsageError("one name at most");
    const { size, base } = flags;
    const body = {
      ...(name !== undefined && { name }),
      ...(size !== undefined && { size }),
      ...(base !== undefined && { base }),
      labels: pairsOf(flags.label, "-l"),
    };
    const made = await client.sandboxes.$post({ header: newKey(), json: body });
    let box = await made.json();
    if (flags.start) {
      await client.sandboxes[":id"].start.$post({
        param: { id: box.id },
        header: newKey(),
        json: {},
      });
      box = await awaitPhase(client, box.id, { wanted: ["running"], silent: flags.json });
    }
    if (flags.json) printJson(box);
    else print(flags.quiet ? box.id : `${box.name} (${box.id}) is ${box.phase}`);
    return flags.start && box.phase !== "running" ? 1 : 0;
  },
});
