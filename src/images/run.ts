/**
 * Runs programs of the system: in a process group of their own, with a time limit, their words in a
 * log. Never through a shell.
 */
import { appendFileSync } from "node:fs";
import { Fault } from "../core/fault.ts";
import { proxyVariables } from "../system/process.ts";

export interface Running {
  /** Where its standard error goes, and its output where it is not wanted. */
  readonly log: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
  readonly timeoutMs?: number;
}

const timeoutMsDefault = 30 * 60_000;
const outputBytesMax = 64 * 1024 ** 2;
const tailLines = 8;

/**
 * Returns what it wrote to its standard output.
 * @throws Fault `unsupported` no such program; `unavailable` with the end of what it said.
 */
export async function run(argv: readonly string[], running: Running): Promise<Uint8Array> {
  const { log, env = {}, cwd, stdin, timeoutMs = timeoutMsDefault } = running;
  const [name = ""] = argv;
  const path = Bun.which(name, { PATH: searchPath });
  if (path === null)
    throw new Fault("unsupported", `${name} is not installed`, {
      code: "program_missing",
      hint: "scripts/up installs what is needed",
    });
  appendFileSync(log, `$ ${argv.join(" ")}\n`);
  const child = Bun.spawn([path, ...argv.slice(1)], {
    env: { PATH: searchPath, ...surroundings, ...proxyVariables(), ...env },
    ...(cwd === undefined ? {} : { cwd }),
    stdin: stdin === undefined ? "ignore" : Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
    timeout: timeoutMs,
    killSignal: "SIGKILL",
    maxBuffer: outputBytesMax,
  });
  const [output, words] = await Promise.all([
    new Response(child.stdout).bytes(),
    new Response(child.stderr).text(),
  ]);
  appendFileSync(log, words);
  const code = await child.exited;
  if (code === 0) return output;
  const said = `${words}\n${new TextDecoder().decode(output.subarray(-4096))}`.trim();
  throw new Fault("unavailable", `${name} failed (${child.signalCode ?? code})`, {
    code: "program_failed",
    hint: `see ${log}; its last words: ${said.split("\n").slice(-tailLines).join(" | ")}`,
  });
}

const surroundings = { LC_ALL: "C.UTF-8", DEBIAN_FRONTEND: "noninteractive" };

/** Where administrators' programs are, whatever our own PATH says. */
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
