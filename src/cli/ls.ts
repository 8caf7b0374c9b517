/** `holdfast ls`: the sandboxes, newest first. */
import type { SandboxView } from "../api/sandbox-view.ts";
import { allSandboxes } from "./boxes.ts";
import { clientCommand, pairsOf, print, printJson, sinceText, table } from "./command.ts";

const usage = `usage: holdfast ls [--phase PHASE[,PHASE]] [-l NAME=VALUE]… [-q] [--json]

  --phase  only these phases; "deleted" shows deleted ones
  -l       only those with this label
  -q       ids only
exit codes: 0 · 1 refused · 2 usage · 4 API key`;

export const ls = clientCommand({
  usage,
  flags: { phase: { kind: "text" }, label: { kind: "list", short: "l" } },
  run: async ({ client, flags }) => {
    const labels = pairsOf(flags.label, "-l");
    const filter: Record<string, string> = {};
    if (flags.phase !== undefined) filter["phase"] = flags.phase;
    for (const [name, value] of Object.entries(labels)) filter[`label.${name}`] = value;
    const rows: string[][] = [];
    for await (const box of allSandboxes(client, filter)) {
      if (flags.json) printJson(box);
      else if (flags.quiet) print(box.id);
      else rows.push(rowOf(box));
    }
    if (flags.json || flags.quiet) return 0;
    return print(table(["NAME", "PHASE", "SINCE", "SIZE", "COMMANDS", "BASE", "ID"], rows));
  },
});

const rowOf = (box: SandboxView): string[] => [
  box.name,
  box.phase,
  sinceText(box.phase_since),
  box.size,
  String(box.commands_live),
  box.base.name,
  box.id,
];
