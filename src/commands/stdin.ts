/** Stdin of a running command: pieces by offset, each taken once, held until the guest has it. */
import { Fault } from "../core/fault.ts";
import type { Tx } from "../db/open.ts";
import { type CommandRow, isFinal, stdinHeldBytesMax } from "./command.ts";
import { changeCommand, insertStdin, stdinExtent } from "./store.ts";

export interface StdinWish {
  command: CommandRow;
  /** Bytes of stdin before this piece: its sequence number. */
  offset: number;
  data: Uint8Array;
  eof: boolean;
}

/**
 * Returns how many bytes are accepted in all. A piece that came before changes nothing.
 * @throws Fault `conflict` no open stdin, or a piece is missing before this one; `quota` too much
 *   is held already.
 */
export async function acceptStdin(tx: Tx, wish: StdinWish): Promise<number> {
  const { command, offset, data, eof } = wish;
  if (!command.stdin || isFinal(command.state))
    throw new Fault("conflict", `command "${command.id}" has no open stdin`, {
      code: "stdin_closed",
      hint: "ask for it with stdin: true when the command is sent",
    });
  const { endBytes, heldBytes } = await stdinExtent(tx, command);
  if (offset > endBytes)
    throw new Fault("conflict", `stdin is at ${endBytes}, the piece begins at ${offset}`, {
      code: "stdin_gap",
      hint: "send the missing bytes first",
      details: { offset: endBytes },
    });
  const fresh = data.subarray(endBytes - offset);
  if (fresh.length > 0 || (eof && !command.stdin_closed)) refuseClosed(command, endBytes);
  if (fresh.length > 0) {
    if (heldBytes + fresh.length > stdinHeldBytesMax) throw full(command);
    await insertStdin(tx, { command, offset: endBytes, data: fresh });
  }
  if (eof) await changeCommand(tx, command, { stdin_closed: 1 });
  return endBytes + fresh.length;
}

function refuseClosed(command: CommandRow, endBytes: number): void {
  if (!command.stdin_closed) return;
  throw new Fault("conflict", `stdin of "${command.id}" was closed at ${endBytes}`, {
    code: "stdin_closed",
  });
}

function full(command: CommandRow): Fault {
  return new Fault("quota", `${stdinHeldBytesMax} bytes of stdin wait for "${command.id}"`, {
    code: "stdin_full",
    hint: "send the piece again when the program has read some",
    retryAfterSeconds: 1,
  });
}
