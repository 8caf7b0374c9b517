/** `holdfast init`: a data directory with its settings, ready to be served. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault, faultKinds } from "../core/fault.ts";
import { exampleText } from "../system/settings.ts";
import { parseArguments } from "./arguments.ts";
import { defaultData } from "./client.ts";
import { type CliCommand, note, print, printJson } from "./command.ts";
import { prepareData } from "./data.ts";

const usage = `usage: holdfast init [--data DIR] [--json]

  Makes DIR (default ${defaultData}) and DIR/settings.toml with every setting commented.
  What is there already stays as it is.
exit codes: 0 · 2 usage · 4 not permitted`;

const flags = {
  data: { kind: "text" },
  json: { kind: "switch" },
  help: { kind: "switch", short: "h" },
} as const;

export const init: CliCommand = {
  usage,
  run: async (argv) => {
    const { flags: wanted } = parseArguments(argv, flags);
    if (wanted.help) return print(usage);
    const data = wanted.data ?? defaultData;
    const settings = join(data, "settings.toml");
    try {
      prepareData(data);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      note(`error: ${error.message}\n  what to do: ${error.hint}`);
      return faultKinds[error.kind].exit;
    }
    const commented = exampleText.replaceAll(/^(?=[^#\n])/gm, "# ");
    if (!existsSync(settings)) writeFileSync(settings, commented, { mode: 0o600 });
    if (wanted.json) return printJson({ data, settings });
    return print(`${settings} has every setting\nnext: holdfast serve --data ${data}`);
  },
};
