/**
 * `bun run bench main [GROUP…] [--json]`: measures, prints a table, and fails where a bar is missed.
 * With --json each row is an object of its own line.
 */
import { parseArgs } from "node:util";
import { api } from "./api.ts";
import { boot } from "./boot.ts";
import { command } from "./command.ts";
import { fleet } from "./fleet.ts";
import { memory } from "./memory.ts";
import { output } from "./output.ts";
import { barText, type Group, isOk, type Row } from "./rows.ts";

const groups: Readonly<Record<string, Group>> = { boot, command, output, api, memory, fleet };

const { values, positionals } = parseArgs({
  options: { json: { type: "boolean", default: false } },
  allowPositionals: true,
});
const names = positionals.length > 0 ? positionals : Object.keys(groups);
const rows: Row[] = [];
for (const name of names) {
  const group = groups[name];
  if (!group)
    throw new Error(`there is no group "${name}"; say one of: ${Object.keys(groups).join(", ")}`);
  process.stderr.write(`${name}…\n`);
  const found = await group((line) => process.stderr.write(`  ${line}\n`));
  rows.push(...found);
  if (values.json) for (const row of found) console.log(JSON.stringify(asJson(row)));
}
if (!values.json) printTable();
process.exit(rows.every(isOk) ? 0 : 1);

function asJson(row: Row) {
  const { group, what, value, unit } = row;
  return {
    group,
    what,
    value: Number(value.toPrecision(4)),
    unit,
    bar: barText(row) || null,
    ok: isOk(row),
  };
}

function printTable(): void {
  const cells = rows.map((row) => {
    const mark = row.bar ? (isOk(row) ? "ok" : "MISSED") : "";
    return [row.group, row.what, `${row.value.toPrecision(3)} ${row.unit}`, barText(row), mark];
  });
  const table = [["group", "what", "value", "bar", ""], ...cells];
  const widths = [0, 1, 2, 3].map((at) => Math.max(...table.map((line) => line[at]?.length ?? 0)));
  for (const line of table)
    console.log(
      line
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}
