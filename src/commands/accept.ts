/** Accepting a command: durable before the answer, and before anything is sent. */
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import type { Tx } from "../db/open.ts";
import { requestStart, type StartPorts } from "../sandboxes/start.ts";
import type { BusySandbox } from "../sandboxes/store.ts";
import {
  argumentsBytesMax,
  type CommandRow,
  environmentBytesMax,
  liveCommandsMax,
} from "./command.ts";
import { insertCommand } from "./store.ts";

export interface Acceptance {
  sandbox: BusySandbox;
  argv: readonly string[];
  cwd: string | null;
  env: Readonly<Record<string, string>>;
  user: string;
  timeoutMs: number | null;
  stdin: boolean;
  /** The API key's id. */
  by: string;
}

/**
 * Starts the sandbox where it is not running.
 * @throws Fault `invalid` too long; `conflict` the sandbox is being stopped or deleted; `quota`,
 *   `full` no room to start it, or too many commands that have not ended.
 */
export async function acceptCommand(
  tx: Tx,
  ports: StartPorts,
  wanted: Acceptance,
): Promise<CommandRow> {
  refuseTooLong(wanted);
  const { sandbox } = wanted;
  if (sandbox.commands_live >= liveCommandsMax)
    throw new Fault(
      "quota",
      `"${sandbox.name}" has ${liveCommandsMax} commands that have not ended`,
      {
        code: "quota_exceeded",
        hint: "wait until some have ended, or end them",
        retryAfterSeconds: 5,
        details: {
          quota: {
            metric: "commands.live",
            limit: liveCommandsMax,
            used: liveCommandsMax,
            used_by: { sandbox_id: sandbox.id },
            clears_when: "a command of this sandbox ends",
          },
        },
      },
    );
  await requestStart(tx, ports, sandbox);
  const nowMs = ports.clock.now();
  const id = makeId("command", nowMs, ports.random.bytes(10));
  return insertCommand(tx, {
    id,
    sandbox_id: sandbox.id,
    argv: JSON.stringify(wanted.argv),
    cwd: wanted.cwd,
    env: JSON.stringify(wanted.env),
    user: wanted.user,
    timeout_ms: wanted.timeoutMs,
    stdin: wanted.stdin ? 1 : 0,
    accepted_by: wanted.by,
    accepted_at_ms: nowMs,
  });
}

function refuseTooLong({ argv, env }: Acceptance): void {
  const lengthOf = (texts: readonly string[]): number =>
    texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0);
  if (lengthOf(argv) > argumentsBytesMax)
    throw new Fault("invalid", `the arguments are over ${argumentsBytesMax} bytes together`, {
      code: "arguments_too_long",
      hint: "send the data on stdin",
    });
  if (lengthOf(Object.entries(env).flat()) > environmentBytesMax)
    throw new Fault("invalid", `the environment is over ${environmentBytesMax} bytes`, {
      code: "environment_too_long",
      hint: "send the data on stdin",
    });
}
