/** `holdfast info`: all about one sandbox or command, or about this host. */
import type { Client } from "./client.ts";
import { clientCommand, print, printJson } from "./command.ts";

const usage = `usage: holdfast info [NAME|CMD] [--json]

  Without a name: the host, its hypervisor and what is free.
exit codes: 0 · 1 refused · 2 usage · 4 API key`;

export const info = clientCommand({
  usage,
  flags: {},
  run: async ({ client, flags, words }) => {
    const answer = await lookUp(client, words[0]);
    return flags.json ? printJson(answer) : print(linesOf(answer).join("\n"));
  },
});

async function lookUp(client: Client, id: string | undefined): Promise<object> {
  const query = {};
  if (id === undefined) return (await client.system.$get({ query })).json();
  if (id.startsWith("cmd_"))
    return (await client.commands[":id"].$get({ param: { id }, query })).json();
  return (await client.sandboxes[":id"].$get({ param: { id }, query })).json();
}

function linesOf(value: object, indent = ""): string[] {
  return Object.entries(value).flatMap(([name, part]: [string, unknown]) =>
    typeof part === "object" && part !== null && Object.keys(part).length > 0
      ? [`${indent}${name}:`, ...linesOf(part, `${indent}  `)]
      : [`${indent}${name}: ${typeof part === "object" ? (part === null ? "-" : "none") : part}`],
  );
}
