/**
 * The command line of QEMU, as a value. Paths of the run's own files are relative: it runs in the
 * run's directory. Nothing here may name a secret: command lines are public on a host.
 */
import { MiB } from "../../core/units.ts";
import { kernelCommandLine } from "../../images/kernel-command-line.ts";
import type { VmRef, VmSpec } from "../vmm.ts";

export interface QemuAcceleration {
  readonly kind: "kvm" | "emulated";
  /** Host memory for translated code, MiB; emulated only. */
  readonly translationMib: number;
}

export interface QemuMachine {
  /** Absolute path of qemu-system-x86_64. */
  readonly program: string;
  /** Whose VM it is; part of the command line, so that nobody ends another's. */
  readonly installation: string;
  readonly acceleration: QemuAcceleration;
}

/** As `src/guest/agent` looks for it. */
export const guestPortName = "holdfast.guest";

/** Names in the run's directory. */
export const sockets = { guest: "guest", qmp: "qmp" } as const;

/** The argument by which a VM's process is recognized. */
export const ownerName = (installation: string, { sandbox, run }: VmRef): string =>
  `${ownerPrefix(installation)}${sandbox}:${run}`;
export const ownerPrefix = (installation: string): string => `guest=holdfast:${installation}:`;

/** qemu(1) of version 7.2. */
export function qemuArgv(spec: VmSpec, machine: QemuMachine): string[] {
  const { program, installation, acceleration } = machine;
  return [
    program,
    ...["-name", ownerName(installation, spec.ref)],
    ...isolation,
    ...processor(acceleration),
    ...["-smp", String(spec.vcpus), "-m", `${Math.floor(spec.memoryBytes / MiB)}M`],
    ...boot(spec, acceleration),
    ...disk({ name: "root", path: spec.diskPath, isReadOnly: false }),
    ...disk({ name: "tools", path: spec.boot.toolsPath, isReadOnly: true }),
    ...guestPort,
    ...monitors,
    ...["-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"],
  ];
}

const isolation: readonly string[] = [
  ...["-nodefaults", "-no-user-config", "-display", "none", "-vga", "none"],
  "-sandbox",
  "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
];

/** Under emulation never qemu64: it lacks instructions that Bun needs. */
export function cpuModel({ kind }: QemuAcceleration): string {
  return kind === "kvm" ? "host" : "Nehalem";
}

export function processor(acceleration: QemuAcceleration): string[] {
  const { kind, translationMib } = acceleration;
  const accel = kind === "kvm" ? "kvm" : `tcg,thread=multi,tb-size=${translationMib}`;
  return ["-machine", "q35", "-accel", accel, "-cpu", cpuModel(acceleration)];
}

/** A guest that resets ends; who looks after the VM decides whether it boots again. */
function boot({ boot: files, hostname, machineId }: VmSpec, { kind }: QemuAcceleration): string[] {
  return [
    ...["-no-reboot", "-action", "panic=shutdown", "-device", "pvpanic-pci"],
    ...["-kernel", files.kernelPath, "-initrd", files.initramfsPath],
    ...["-append", kernelCommandLine({ hostname, machineId, emulated: kind === "emulated" })],
    ...["-chardev", "file,id=console,path=console.pipe", "-serial", "chardev:console"],
  ];
}

interface DiskOptions {
  readonly name: string;
  readonly path: string;
  readonly isReadOnly: boolean;
}

/** In the order of the arguments the guest finds /dev/vda, /dev/vdb. */
function disk({ name, path, isReadOnly }: DiskOptions): string[] {
  const discard = isReadOnly ? {} : { discard: "unmap", "detect-zeroes": "unmap" };
  const file = { driver: "file", filename: path, locking: "on", aio: "threads" };
  const node = { driver: "raw", "node-name": name, "read-only": isReadOnly, ...discard, file };
  return [
    ...["-blockdev", JSON.stringify(node)],
    ...["-device", `virtio-blk-pci,drive=${name},serial=${name}`],
  ];
}

const guestPort: readonly string[] = [
  ...["-device", "virtio-serial-pci"],
  ...["-chardev", `socket,id=guest,path=${sockets.guest},server=on,wait=off`],
  ...["-device", `virtserialport,chardev=guest,name=${guestPortName}`],
];

/** The first is for Holdfast's commands, the second tells the keeper why the VM ends. */
const monitors: readonly string[] = [
  ...["-chardev", `socket,id=qmp,path=${sockets.qmp},server=on,wait=off`],
  ...["-mon", "chardev=qmp,mode=control"],
  ...["-chardev", "pipe,id=events,path=monitor", "-mon", "chardev=events,mode=control"],
];
