import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cgroup2Mounts } from "./cgroups.ts";
import { DetachedLauncher } from "./detached.ts";
import { endProcess, findByArgument, isAlive } from "./identity.ts";
import { systemdRunArgv } from "./systemd.ts";

test("cgroup2 is found wherever it is mounted, and cgroup v1 is not taken for it", () => {
  const lines = [
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755",
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw shared:9 - cgroup2 cgroup2 rw",
  ];
  expect(cgroup2Mounts(lines.join("\n"))).toEqual(["/sys/fs/cgroup/uni fied"]);
});

test("a unit is named after its VM, and gets its arguments as they are", () => {
  const argv = systemdRunArgv({ name: "sb_1-2", argv: ["/bin/echo", "$HOME", "100%"] });
  expect(argv).toContain("--unit=holdfast-vm@sb_1-2.service");
  expect(argv).toContain("--slice=holdfast-vm.slice");
  expect(argv.slice(argv.indexOf("--") + 1)).toEqual(["/bin/echo", "$$HOME", "100%"]);
});

test("what is launched is a session of its own that holds nothing of ours", async () => {
  const directory = mkdtempSync(join(tmpdir(), "launch-"));
  const out = join(directory, "out");
  const script = `cut -d' ' -f6 /proc/$$/stat >${out}; exec sleep 60`;
  await new DetachedLauncher({ cgroups: undefined, givesUpPower: false }).launch({
    name: "one",
    argv: ["/bin/sh", "-c", script, out],
  });
  while (!(await Bun.file(out).exists()) || readFileSync(out, "utf8") === "") await Bun.sleep(10);
  const pid = Number(readFileSync(out, "utf8"));
  while (readFileSync(`/proc/${pid}/comm`, "utf8") !== "sleep\n") await Bun.sleep(10);
  const held = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  expect(held).toEqual(["/dev/null", "/dev/null", "/dev/null"]);
  expect(readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[18]).toBe("10");
  const startTicks = Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[21]);
  expect(isAlive({ pid, startTicks })).toBe(true);
  expect(isAlive({ pid, startTicks: startTicks + 1 })).toBe(false);
  // Another process with its number would be left alone.
  endProcess({ pid, startTicks: startTicks + 1 });
  expect(isAlive({ pid, startTicks })).toBe(true);
  endProcess({ pid, startTicks });
  while (isAlive({ pid, startTicks })) await Bun.sleep(10);
  rmSync(directory, { recursive: true });
});

test("a process is found by an argument, not by part of one", async () => {
  const child = Bun.spawn(["sleep", "59.125"], { stdio: ["ignore", "ignore", "ignore"] });
  // Until it is the other program it still has our command line.
  const pidsOf = (text: string) => findByArgument(text).map(({ identity }) => identity.pid);
  while (!pidsOf("59.125").includes(child.pid)) await Bun.sleep(1);
  expect(pidsOf("9.125")).not.toContain(child.pid);
  child.kill();
});
