import { expect, test } from "bun:test";
import { GiB } from "../../core/units.ts";
import { kernelCommandLine } from "../../images/kernel-command-line.ts";
import type { VmSpec } from "../vmm.ts";
import { guestPortName, type QemuMachine, qemuArgv } from "./argv.ts";

const spec: VmSpec = {
  ref: { sandbox: "sb_000000000000000000000000aa", run: 3 },
  vcpus: 2,
  memoryBytes: GiB,
  diskPath: '/data/odd, "name".raw',
  boot: { kernelPath: "/b/vmlinux", initramfsPath: "/b/initramfs", toolsPath: "/b/tools.erofs" },
  hostname: "one",
  machineId: "0123456789abcdef0123456789abcdef",
};
const machine: QemuMachine = {
  program: "/usr/bin/qemu-system-x86_64",
  installation: "here",
  acceleration: { kind: "emulated", translationMib: 64 },
};
const after = (argv: string[], option: string): string[] =>
  argv.filter((_, at) => argv[at - 1] === option);

test("the command line of an emulated VM is exactly this", () => {
  const [kernelLine = ""] = after(qemuArgv(spec, machine), "-append");
  expect(kernelLine).toContain("systemd.hostname=one");
  const argv = qemuArgv(spec, machine).map((each) => (each === kernelLine ? "<kernel>" : each));
  expect(argv.join("\n")).toMatchSnapshot();
});

test("on KVM the processor is the host's and the guest's kernel is not trimmed", () => {
  const kvm: QemuMachine = { ...machine, acceleration: { kind: "kvm", translationMib: 0 } };
  const argv = qemuArgv(spec, kvm);
  expect(after(argv, "-accel")).toEqual(["kvm"]);
  expect(after(argv, "-cpu")).toEqual(["host"]);
  expect(after(argv, "-append")).toEqual([
    kernelCommandLine({ hostname: "one", machineId: spec.machineId, emulated: false }),
  ]);
});

test("a disk's path is one value, whatever it holds, and the tools disk comes second", () => {
  const [root, tools] = after(qemuArgv(spec, machine), "-blockdev").map((each) => JSON.parse(each));
  expect(root).toMatchObject({ "read-only": false, file: { filename: spec.diskPath } });
  expect(tools).toMatchObject({ "read-only": true, file: { filename: spec.boot.toolsPath } });
});

test("the guest part finds its port by the name it has here", async () => {
  const guestPart = await Bun.file(`${import.meta.dir}/../../guest/agent/main.ts`).text();
  expect(guestPart).toContain(`portName = "${guestPortName}"`);
});
