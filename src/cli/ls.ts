/** `holdfast ls`: the sandboxes, newest first. */
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
    const query: Record<string, string> = { limit: "100" };
    if (flags.phase !== undefined) query["phase"] = flags.phase;
    for (const [name, value] of Object.entries(labels)) query[`label.${name}`] = value;
    const rows: string[][] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await client.sandboxes.$get({ query: { ...query, ...(cursor && { cursor }) } });
      const { data, next_cursor } = await page.json();
      if (flags.json) data.forEach(printJson);
      else if (flags.quiet) print(data.map(({ id }) => `${id}\n`).join(""));
      for (const box of data)
        rows.push([
          box.name,
          box.phase,
          sinceText(box.phase_since),
          box.size,
          String(box.commands_live),
          box.base.name,
          box.id,
        ]);
      cursor = next_cursor;
    }
    if (flags.json || flags.quiet) return 0;
    return print(table(["NAME", "PHASE", "SINCE", "SIZE", "COMMANDS", "BASE", "ID"], rows));
  },
});
