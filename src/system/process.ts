/**
 * What only libc can do for a process: become another program, and hold a lock for as long as it
 * lives; and what its surroundings tell it.
 */
import { dlopen, ptr } from "bun:ffi";
import { closeSync, openSync } from "node:fs";
import { Fault } from "../core/fault.ts";
import { ifThere } from "./files.ts";

const libc = () =>
  dlopen("libc.so.6", {
    execve: { args: ["ptr", "ptr", "ptr"], returns: "int" },
    flock: { args: ["int", "int"], returns: "int" },
  });

/** Runs the same program anew in this process: same pid, same descriptors. Returns only on failure. */
export function becomeAgain(argv: readonly string[], env: Readonly<NodeJS.ProcessEnv>): void {
  const kept: Buffer[] = [];
  const textOf = (text: string): Buffer => {
    const bytes = Buffer.from(`${text}\0`);
    kept.push(bytes);
    return bytes;
  };
  const listOf = (texts: readonly string[]): BigUint64Array =>
    BigUint64Array.from([...texts.map((text) => BigInt(ptr(textOf(text)))), 0n]);
  const pairs = Object.entries(env).filter(([, value]) => value !== undefined);
  const [args, vars] = [listOf(argv), listOf(pairs.map(([name, value]) => `${name}=${value}`))];
  libc().symbols.execve(ptr(textOf("/proc/self/exe")), ptr(args), ptr(vars));
}

const lockShared = 1;
const lockExclusive = 2;
const lockNonBlocking = 4;

/**
 * Takes the lock on this file until the process ends, or until what it returns is called.
 * @throws Fault `conflict` another process has it.
 */
export function holdLock(path: string): () => void {
  const fd = openSync(path, "a", 0o600);
  if (libc().symbols.flock(fd, lockExclusive | lockNonBlocking) === 0) return () => closeSync(fd);
  closeSync(fd);
  throw new Fault("conflict", `another process holds ${path}`, { code: "data_in_use" });
}

/** Where files live that a restart of the machine may remove. */
export const volatileDirectory = (): string =>
  process.getuid?.() === 0 ? "/run" : (process.env["XDG_RUNTIME_DIR"] ?? "/tmp");

/** What tells programs on this machine how to reach the network. */
export function proxyVariables(): Record<string, string> {
  const names = ["http_proxy", "https_proxy", "ftp_proxy", "no_proxy"];
  return Object.fromEntries(
    [...names, ...names.map((name) => name.toUpperCase())].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Looks at locks that other processes hold with flock(2). */
export class LockProbe {
  readonly #libc = libc();

  /**
   * Whether some process holds the lock on this file. Takes it, shared, for an instant: who wants it
   * meanwhile has to wait a moment and not give up at once.
   */
  isHeld(path: string): boolean {
    const fd = ifThere(() => openSync(path, "r"));
    if (fd === undefined) return false;
    const taken = this.#libc.symbols.flock(fd, lockShared | lockNonBlocking) === 0;
    closeSync(fd);
    return !taken;
  }
}
