/** `holdfast exec`: runs a command in a sandbox as if it ran here, and exits as it did. */
import type { CommandView } from "../api/command-view.ts";
import { UsageError } from "./arguments.ts";
import { type Client, newKey, Refusal } from "./client.ts";
import { type Call, clientCommand, note, pairsOf, print, printJson } from "./command.ts";
import { exitCodeOf, exitCodesText, exitUnsure, verdictOf, writeOutput } from "./follow.ts";
import { feedStdin } from "./stdin.ts";

const usage = `usage: holdfast exec [-d] [-i] [-w DIR] [-e NAME=VALUE]… [-u USER] [--timeout SECONDS] NAME -- CMD [ARG]…

  Starts the sandbox where it is stopped. Output comes as it is written; a lost connection or a
  restarted server is waited for, and nothing is run twice.
  -d         return at once with the command's id
  -i         pass stdin on
  -w DIR     working directory; else the user's home
  -u USER    else "agent"
  --json     each piece of output as a line of JSON, and at last the command
  Ctrl-C     sends INT to the command, a second one KILL
${exitCodesText}`;

const flags = {
  detach: { kind: "switch", short: "d" },
  interactive: { kind: "switch", short: "i" },
  workdir: { kind: "text", short: "w" },
  env: { kind: "list", short: "e" },
  user: { kind: "text", short: "u" },
  timeout: { kind: "text" },
} as const;

export const exec = clientCommand({
  usage,
  whenMute: exitUnsure,
  flags,
  wordsEnd: 1,
  client: { patienceMs: 300_000, onLost: () => note("connection lost; trying again") },
  run: async (call) => {
    const { client, flags: wanted } = call;
    const sent = await send(call);
    if (typeof sent === "number") return sent;
    if (wanted.detach) return wanted.json ? printJson(sent) : print(sent.id);
    const input = wanted.interactive ? feedStdin(client, sent.id) : undefined;
    forwardInterrupts(client, sent.id);
    const waiting = wanted.json ? undefined : tellWaiting(client, sent);
    await writeOutput(client, sent.id, { live: true, json: wanted.json });
    waiting?.();
    input?.stop();
    const query = { wait: "25" };
    const ended = await client.commands[":id"].$get({ param: { id: sent.id }, query });
    return tellEnd(await ended.json(), wanted.json);
  },
});

/** A refusal here means that nothing ran. */
async function send({ client, flags: wanted, words }: Call<typeof flags>) {
  const [id, ...argv] = words;
  if (id === undefined || argv.length === 0) throw new UsageError("NAME and CMD are needed");
  const { workdir, user, timeout } = wanted;
  const json = {
    argv,
    env: pairsOf(wanted.env, "-e"),
    stdin: wanted.interactive,
    ...(workdir !== undefined && { cwd: workdir }),
    ...(user !== undefined && { user }),
    ...(timeout !== undefined && { timeout_seconds: Number(timeout) }),
  };
  try {
    const answer = await client.sent[":id"].commands.$post({
      param: { id },
      header: newKey(),
      json,
    });
    return await answer.json();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (wanted.json) printJson(error.problem);
    else note(`error: ${error.problem.detail}\n  what to do: ${error.problem.hint ?? "-"}`);
    return 125;
  }
}

const quietMs = 1_500;

/** A person at a terminal is told why nothing happens yet. Returns what ends it. */
function tellWaiting(client: Client, { id, sandbox_id }: CommandView): () => void {
  let over = process.stderr.isTTY !== true;
  const tell = async (): Promise<void> => {
    let told = "";
    for (await Bun.sleep(quietMs); !over; await Bun.sleep(quietMs)) {
      const query = {};
      const command = await client.commands[":id"].$get({ param: { id }, query });
      if ((await command.json()).state !== "queued") return;
      const box = await client.sandboxes[":id"].$get({ param: { id: sandbox_id }, query });
      const { name, phase_message } = await box.json();
      if (phase_message !== told) note(`${name}: ${phase_message}`);
      told = phase_message;
    }
  };
  // Only a comfort: the output's own reader reports what goes wrong.
  tell().catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
  });
  return () => {
    over = true;
  };
}

function tellEnd(command: CommandView, json: boolean): number {
  const verdict = verdictOf(command);
  if (json) printJson(command);
  else if (verdict !== undefined) note(verdict);
  return exitCodeOf(command);
}

function forwardInterrupts(client: Client, id: string): void {
  let signal = "INT";
  process.on("SIGINT", () => {
    const wish = { param: { id }, header: newKey(), json: { signal } };
    signal = "KILL";
    client.commands[":id"].kill.$post(wish).catch((error: unknown) => {
      // It has ended meanwhile, or its end comes by another way; the output says which.
      if (!(error instanceof Refusal)) throw error;
    });
  });
}
