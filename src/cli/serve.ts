/**
 * `holdfast serve`: the appliance. It may be ended at any moment: VMs and commands run on, and the
 * next start goes on from the records.
 */
import { join } from "node:path";
import { ensureAdminKey } from "../api/admin-key.ts";
import { type Appliance, openAppliance } from "../appliance.ts";
import { Fault, faultKinds } from "../core/fault.ts";
import { build } from "../system/build.ts";
import { systemClock } from "../system/clock.ts";
import { jsonLog, type Log } from "../system/log.ts";
import { becomeAgain, holdLock } from "../system/process.ts";
import { readSettings, type Settings } from "../system/settings.ts";
import { parseArguments, UsageError } from "./arguments.ts";
import { defaultData } from "./client.ts";
import { type CliCommand, note, print } from "./command.ts";
import { announce, prepareData, refuseNoexec } from "./data.ts";
import { logLines } from "./mute.ts";

const usage = `usage: holdfast serve [--data DIR] [--port N] [--address IP] [--behind-proxy] [--settings FILE]
                      [--check]

  --data DIR       where everything is kept (default ${defaultData})
  --settings FILE  default DATA/settings.toml; settings.example.toml shows every setting
  --behind-proxy   listen on another address than loopback: a proxy in front speaks TLS
  --check          only look whether it would start with these settings
Logs are JSON lines on stdout. SIGTERM ends it; VMs and commands run on.
exit codes: 0 ended on request · 1 cannot serve, the message says why · 2 usage or settings ·
  70 a mistake of ours, start it again`;

const flags = {
  data: { kind: "text" },
  port: { kind: "text" },
  address: { kind: "text" },
  "behind-proxy": { kind: "switch" },
  settings: { kind: "text" },
  check: { kind: "switch" },
  help: { kind: "switch", short: "h" },
} as const;

const exitBug = 70;
/** Above the longest wait of a request and the pause between two heartbeats. */
const idleTimeoutSeconds = 60;
/** For what is being answered; who only waits is cut off, and asks again. */
const drainMs = 200;
/** The API refuses far less by itself, with a problem; above this the connection is only cut. */
const bodyBytesMax = 64 * 1024 * 1024;

export const serve: CliCommand = {
  usage,
  whenMute: "go on",
  run: async (argv) => {
    const { flags: wanted, words } = parseArguments(argv, flags);
    if (wanted.help) return print(usage);
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many`);
    const data = wanted.data ?? defaultData;
    try {
      prepareData(data);
      unpackInto(join(data, "tmp"));
      const given = readSettings(wanted.settings ?? join(data, "settings.toml"));
      const settings = overridden(given, wanted);
      return wanted.check ? 0 : await serveUntilToldToEnd(data, settings);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      note(`error: ${error.message}${error.hint ? `\n  what to do: ${error.hint}` : ""}`);
      return faultKinds[error.kind].exit;
    }
  },
};

/** A compiled binary reads BUN_TMPDIR before our code runs, so it is run again with it. */
function unpackInto(directory: string): void {
  refuseNoexec(directory);
  const isCompiled = import.meta.path.startsWith("/$bunfs/");
  if (!isCompiled || process.env["BUN_TMPDIR"] !== undefined) return;
  const env = { ...process.env, BUN_TMPDIR: directory };
  becomeAgain([process.execPath, ...process.argv.slice(2)], env);
}

interface Overrides {
  port: string | undefined;
  address: string | undefined;
  "behind-proxy": boolean;
}

/** @throws Fault `unsupported` an address that would carry API keys in the clear. */
function overridden(settings: Settings, flags: Overrides): Settings {
  const port = flags.port === undefined ? settings.listen.port : Number(flags.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError("--port needs a number");
  const address = flags.address ?? settings.listen.address;
  const behind_proxy = flags["behind-proxy"] || settings.listen.behind_proxy;
  const isLoopback = /^(127\.|::1$|localhost$)/.test(address);
  if (!isLoopback && !behind_proxy)
    throw new Fault("unsupported", `${address} would carry API keys in the clear`, {
      code: "plain_http",
      hint: "put a proxy with TLS in front and give --behind-proxy, or listen on 127.0.0.1",
    });
  return { ...settings, listen: { address, port, behind_proxy } };
}

async function serveUntilToldToEnd(data: string, settings: Settings): Promise<number> {
  // What commands wrote is nobody else's.
  process.umask(0o077);
  holdData(data);
  const log = jsonLog(systemClock, logLines());
  const told = toldToEnd();
  let ending = false;
  const onBug = (error: unknown): void => {
    // Loops that find their database closed are no bug.
    if (!ending) endWithBug(log, error);
  };
  process.on("uncaughtException", onBug);
  process.on("unhandledRejection", onBug);
  const appliance = await openAppliance({ data, settings, log, build, onBug });
  await ensureAdminKey(appliance.ports, join(data, "admin.key"));
  const server = listen(appliance, settings);
  announce(data, server.url.origin);
  log.info("serving", { url: server.url.origin, version: build.version, commit: build.commit });
  const signal = await told;
  log.info("ending; VMs and commands run on", { signal });
  ending = true;
  // Nothing is tidied up: every way to end is as safe as a power cut, and the next one waits for us.
  await Promise.race([server.stop(false), systemClock.sleep(drainMs)]);
  return 0;
}

function holdData(data: string): void {
  try {
    holdLock(join(data, "lock"));
  } catch (error) {
    throw new Fault("conflict", `another holdfast serves ${data}`, {
      code: "data_in_use",
      hint: `cat ${join(data, "serve.pid")} names it; two on one data directory would lose work`,
      cause: error,
    });
  }
}

/** @throws Fault `conflict` the port is taken. */
function listen({ api }: Appliance, { listen: { address, port } }: Settings) {
  try {
    return Bun.serve({
      hostname: address,
      port,
      idleTimeout: idleTimeoutSeconds,
      maxRequestBodySize: bodyBytesMax,
      fetch: (request) => api.fetch(request),
    });
  } catch (error) {
    throw new Fault("conflict", `${address}:${port} cannot be listened on`, {
      code: "address_in_use",
      hint: "choose another port: --port N",
      cause: error,
    });
  }
}

function toldToEnd(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.once(signal, () => resolve(signal));
  });
}

/** Once the answer is out: nothing that a bug left behind in memory is used again. */
function endWithBug(log: Log, error: unknown): void {
  log.error("ending because of a bug; start again", error);
  setTimeout(() => process.exit(exitBug), 100);
}
