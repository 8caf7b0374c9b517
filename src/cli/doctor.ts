/** `holdfast doctor`: what this machine has and lacks, each with what to do. Changes nothing. */
import { accessSync, constants, existsSync, statfsSync } from "node:fs";
import { freemem } from "node:os";
import type { Check } from "../api/readiness.ts";
import { parseArguments } from "./arguments.ts";
import { dataDirectory, findTarget } from "./client.ts";
import { type CliCommand, coloured, print, printJson } from "./command.ts";
import { isNoexec } from "./data.ts";

const usage = `usage: holdfast doctor [--data DIR] [--url URL] [--json]

exit codes: 0 nothing is missing · 1 something is · 2 usage`;

const flags = {
  data: { kind: "text" },
  url: { kind: "text" },
  json: { kind: "switch" },
  help: { kind: "switch", short: "h" },
} as const;

const gib = 1024 ** 3;

export const doctor: CliCommand = {
  usage,
  run: async (argv) => {
    const { flags: wanted } = parseArguments(argv, flags);
    if (wanted.help) return print(usage);
    const data = dataDirectory(wanted.data);
    const checks = [...localChecks(data), ...(await serverChecks(findTarget(wanted).url))];
    const ok = checks.every((check) => check.ok);
    if (wanted.json) printJson({ ok, checks });
    else print(checks.map(lineOf).join("\n"));
    return ok ? 0 : 1;
  },
};

function lineOf({ ok, name, message, fix }: Check): string {
  const mark = ok ? coloured("ok  ", 32) : coloured("FAIL", 31);
  return `${mark} ${name}: ${message}${fix === null ? "" : `\n     what to do: ${fix}`}`;
}

interface Finding {
  name: string;
  ok: boolean;
  code: string;
  message: string;
  fix: string;
}

const checkOf = ({ fix, ...rest }: Finding): Check => ({
  ...rest,
  code: rest.ok ? "ok" : rest.code,
  fix: rest.ok ? null : fix,
});

function localChecks(data: string): Check[] {
  const kvm = mayUse("/dev/kvm");
  const qemu = Bun.which("qemu-system-x86_64");
  const free = existsSync(data) ? statfsSync(data) : undefined;
  const freeGib = free ? (free.bavail * free.bsize) / gib : undefined;
  return [
    { name: "kvm", ok: true, code: "ok", fix: null, message: kvmText(kvm) },
    checkOf({
      name: "qemu",
      ok: qemu !== null,
      code: "qemu_missing",
      message: qemu ?? "qemu-system-x86_64 is not installed.",
      fix: "apt-get install --no-install-recommends qemu-system-x86",
    }),
    checkOf({
      name: "data",
      ok: freeGib !== undefined && !isNoexec(data) && freeGib >= 5,
      code: "data_unfit",
      message:
        freeGib === undefined ? `${data} is missing.` : `${data}: ${freeGib.toFixed(1)} GiB free.`,
      fix: "holdfast init --data DIR, on a file system with room that is not noexec",
    }),
    checkOf({
      name: "memory",
      ok: freemem() > gib / 2,
      code: "memory_low",
      message: `${(freemem() / gib).toFixed(1)} GiB of memory are free.`,
      fix: "end other programs, or add memory",
    }),
  ];
}

const kvmText = (usable: boolean): string =>
  usable
    ? "/dev/kvm can be opened; whether a VM runs on it is tried when serve starts."
    : "no /dev/kvm to open: VMs are emulated, about ten times slower.";

function mayUse(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

/** The server's own checks, where one answers. */
async function serverChecks(url: string): Promise<Check[]> {
  const answer = await fetch(`${url}/readyz`).catch(() => undefined);
  const running = checkOf({
    name: "serve",
    ok: answer !== undefined,
    code: "not_serving",
    message: answer ? `${url} answers.` : `Nothing answers on ${url}.`,
    fix: "holdfast serve",
  });
  if (!answer) return [running];
  const { checks } = (await answer.json()) as { checks: Check[] };
  return [running, ...checks];
}
