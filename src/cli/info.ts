/** `holdfast info`: all about one sandbox, or about this host. */
import { clientCommand, print, printJson } from "./command.ts";

const usage = `usage: holdfast info [NAME] [--json]

  Without a name: the host, its hypervisor and what is free.
exit codes: 0 · 1 refused · 2 usage · 4 API key`;

export const info = clientCommand({
  usage,
  flags: {},
  run: async ({ client, flags, words }) => {
    const [id] = words;
    const answer =
      id === undefined
        ? await (await client.system.$get({ query: {} })).json()
        : await (await client.sandboxes[":id"].$get({ param: { id }, query: {} })).json();
    return flags.json ? printJson(answer) : print(linesOf(answer).join("\n"));
  },
});

function linesOf(value: object, indent = ""): string[] {
  return Object.entries(value).flatMap(([name, part]: [string, unknown]) =>
    typeof part === "object" && part !== null && Object.keys(part).length > 0
      ? [`${indent}${name}:`, ...linesOf(part, `${indent}  `)]
      : [`${indent}${name}: ${typeof part === "object" ? (part === null ? "-" : "none") : part}`],
  );
}
