/**
 * Whether KVM runs our kernel here. A /dev/kvm says little: on some machines no stock kernel gets
 * through its boot on it, so only a guest that was seen to reach user mode counts.
 */
import { accessSync, constants, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { parseJson } from "../../core/json.ts";
import { KiB, secondMs } from "../../core/units.ts";
import { isErrno, readIfThere, writeWhole } from "../../system/files.ts";
import { processor } from "./argv.ts";
import { powerOff, print, tinyInitramfs } from "./tiny-guest.ts";

const limitMs = 10 * secondMs;
const saidBytesMax = 64 * KiB;
const marker = "holdfast: user mode reached";
const device = "/dev/kvm";

export interface KvmVerdict {
  readonly usable: boolean;
  /** One sentence. */
  readonly why: string;
}

export interface Probe {
  /** Absolute path of qemu-system-x86_64, and what it says of its version. */
  readonly program: string;
  readonly version: string;
  /** Undefined where there is none yet. */
  readonly kernelPath: string | undefined;
  /** Where the verdict is kept and the probe works. */
  readonly directory: string;
}

const keptSchema = z.object({ key: z.string(), usable: z.boolean(), why: z.string() });

/** Boots at most once per kernel, processor and QEMU; takes at most 10 s, and mostly none. */
export async function probeKvm(probe: Probe): Promise<KvmVerdict> {
  const absent = whyAbsent();
  if (absent !== undefined) return { usable: false, why: absent };
  const { kernelPath } = probe;
  if (kernelPath === undefined)
    return { usable: false, why: "there is no kernel yet to try KVM with" };
  const path = join(probe.directory, "kvm-verdict.json");
  const { size, mtimeMs } = statSync(kernelPath);
  const key = [kernelPath, size, mtimeMs, processorModel(), probe.version].join("; ");
  const kept = keptSchema.safeParse(parseJson(readIfThere(path) ?? "")).data;
  if (kept?.key === key) return { usable: kept.usable, why: kept.why };
  const verdict = await bootOnKvm(probe.program, kernelPath, probe.directory);
  writeWhole(path, `${JSON.stringify({ key, ...verdict })}\n`);
  return verdict;
}

function whyAbsent(): string | undefined {
  try {
    accessSync(device, constants.R_OK | constants.W_OK);
    return undefined;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return `there is no ${device}`;
    if (isErrno(error, "EACCES", "EPERM")) return `${device} may not be opened`;
    throw error;
  }
}

async function bootOnKvm(
  program: string,
  kernelPath: string,
  directory: string,
): Promise<KvmVerdict> {
  const scratch = mkdtempSync(join(directory, "kvm-probe-"));
  try {
    const initramfs = join(scratch, "initramfs");
    writeFileSync(initramfs, tinyInitramfs(print(`${marker}\n`), powerOff()));
    return await judge(probeArgv(program, kernelPath, initramfs));
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

async function judge(argv: string[]): Promise<KvmVerdict> {
  const child = Bun.spawn(argv, {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: limitMs,
    killSignal: "SIGKILL",
  });
  const [said, words] = await Promise.all([readUpTo(child.stdout), readUpTo(child.stderr)]);
  await child.exited;
  if (said.includes(marker)) return { usable: true, why: "a kernel was booted on KVM and ran" };
  const first = words.split("\n").find((line) => line.trim() !== "");
  const how = child.signalCode === "SIGKILL" ? "did not come up within 10 s" : "did not come up";
  return { usable: false, why: `a kernel tried on ${device} ${how}${first ? `: ${first}` : ""}` };
}

/** The beginning; the rest is read and dropped. */
async function readUpTo(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream)
    if (text.length < saidBytesMax) text += decoder.decode(bytes, { stream: true });
  return text;
}

function probeArgv(program: string, kernelPath: string, initramfs: string): string[] {
  return [
    ...[program, "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none"],
    ...processor({ kind: "kvm", translationMib: 0 }),
    ...["-m", "256M", "-no-reboot", "-kernel", kernelPath, "-initrd", initramfs],
    ...["-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio"],
  ];
}

function processorModel(): string {
  return /^model name\s*: (.*)$/m.exec(readIfThere("/proc/cpuinfo") ?? "")?.[1] ?? "unknown";
}
