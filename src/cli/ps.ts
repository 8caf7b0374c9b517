/** `holdfast ps`: commands, newest first. */
import type { CommandView } from "../api/command-view.ts";
import { allSandboxes } from "./boxes.ts";
import type { Client } from "./client.ts";
import { clientCommand, print, printJson, sinceText, table } from "./command.ts";

const usage = `usage: holdfast ps [NAME] [-a] [-q] [--json]

  NAME  one sandbox's commands, ended ones too; without it, those of all that have not ended
  -a    of all sandboxes, ended ones too (the newest 50 of each)
exit codes: 0 · 1 refused · 2 usage · 4 API key`;

export const ps = clientCommand({
  usage,
  flags: { all: { kind: "switch", short: "a" } },
  run: async ({ client, flags, words }) => {
    const [name] = words;
    const state = name === undefined && !flags.all ? "queued,launching,running" : undefined;
    const boxes = name === undefined ? await allNames(client) : [name];
    const rows: string[][] = [];
    for (const box of boxes)
      for (const command of await commandsOf(client, box, state)) {
        if (flags.json) printJson(command);
        else if (flags.quiet) print(command.id);
        else rows.push(rowOf(box, command));
      }
    if (flags.json || flags.quiet) return 0;
    return print(table(["ID", "SANDBOX", "STATE", "EXIT", "AGE", "COMMAND"], rows));
  },
});

async function allNames(client: Client): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of allSandboxes(client)) names.push(name);
  return names;
}

async function commandsOf(client: Client, id: string, state: string | undefined) {
  const query = state === undefined ? {} : { state };
  const page = await client.sent[":id"].commands.$get({ param: { id }, query });
  return (await page.json()).data;
}

function rowOf(box: string, command: CommandView): string[] {
  const { id, state, exit_code, signal, accepted_at, argv } = command;
  const line = argv[0] === "/bin/bash" && argv[1] === "-lc" ? (argv[2] ?? "") : argv.join(" ");
  const end = exit_code === null ? (signal ?? "-") : String(exit_code);
  const age = sinceText(accepted_at);
  return [id, box, state, end, age, line.replaceAll(/\s+/g, " ").slice(0, 60)];
}
