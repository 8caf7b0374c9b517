/** `holdfast kill`: sends a command a signal. */
import { newKey } from "./client.ts";
import { clientCommand, print, printJson, wordsOf } from "./command.ts";

const usage = `usage: holdfast kill [-s SIGNAL] CMD [--json]

  -s  HUP INT QUIT KILL USR1 USR2 TERM CONT STOP TSTP WINCH; else TERM
exit codes: 0 recorded · 1 refused, as when it has ended · 2 usage · 4 API key`;

export const kill = clientCommand({
  usage,
  flags: { signal: { kind: "text", short: "s" } },
  run: async ({ client, flags, words }) => {
    const [id = ""] = wordsOf(words, "CMD");
    const json = { signal: flags.signal ?? "TERM" };
    const answer = await client.commands[":id"].kill.$post({
      param: { id },
      header: newKey(),
      json,
    });
    const command = await answer.json();
    if (flags.json) return printJson(command);
    return print(flags.quiet ? command.id : `${command.id} is ${command.state}`);
  },
});
