/** What happened, one JSON line each. Never a secret, never a command's output. */
import type { Clock } from "./clock.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** With the whole chain of causes. */
  error(message: string, error: unknown, fields?: LogFields): void;
}

/** @param write takes one line without its newline. */
export function jsonLog(clock: Clock, write: (line: string) => void): Log {
  const line = (level: string, message: string, fields: LogFields = {}): void =>
    write(JSON.stringify({ at: new Date(clock.now()).toISOString(), level, message, ...fields }));
  return {
    info: (message, fields) => line("info", message, fields),
    warn: (message, fields) => line("warn", message, fields),
    error: (message, error, fields) =>
      line("error", message, { ...fields, error: chainOf(error).join("; because ") }),
  };
}

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {} };

function chainOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [String(error)];
  const own = error.name === "Fault" ? error.message : (error.stack ?? error.message);
  return error.cause === undefined ? [own] : [own, ...chainOf(error.cause)];
}
