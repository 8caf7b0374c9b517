/**
 * The round trip of `true`, from its request until its end is known, against `ssh` over a warm
 * master into the same VM, through a port of the same kind.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Group, inPairs, median, timed } from "./rows.ts";
import { BenchVm } from "./vm.ts";

const pairs = 40;

export const command: Group = async (say) => {
  const vm = await BenchVm.begin("small");
  try {
    const ssh = await Ssh.begin(vm);
    say("ssh has a warm master");
    const { driver } = await vm.host.get("/v1/system");
    const one = () => timed(() => accepted(vm));
    await one();
    const { ours, theirs } = await inPairs(pairs, one, () => timed(() => ssh.run("true")));
    ssh.end();
    const [a, b] = [median(ours), median(theirs)];
    const bar = { atMost: driver.acceleration === "kvm" ? 1 : 1.5 };
    return [
      { group: "command", what: "`true`, accepted until its end is known", value: a, unit: "ms" },
      { group: "command", what: "`true` by ssh, warm master", value: b, unit: "ms" },
      { group: "command", what: "command / ssh", value: a / b, unit: "x", bar },
    ];
  } finally {
    await vm.host.end();
  }
};

/** Over HTTP as any client would: one request to send it, one that waits for its end. */
async function accepted(vm: BenchVm): Promise<void> {
  const { id } = await vm.host.post(`/v1/sandboxes/${vm.name}/commands`, { argv: ["true"] });
  await vm.host.until(`/v1/commands/${id}?wait=20`, ({ state }) => state === "exited");
}

class Ssh {
  readonly #directory: string;
  readonly #options: string[];

  private constructor(directory: string, socket: string) {
    this.#directory = directory;
    const proxy = `${process.execPath} ${join(import.meta.dir, "pipe.ts")} ${socket}`;
    this.#options = [
      ...["-F", "none", "-i", join(directory, "key"), "-o", `ProxyCommand=${proxy}`],
      ...["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"],
      ...["-o", `ControlPath=${join(directory, "master")}`, "-o", "LogLevel=ERROR", "agent@vm"],
    ];
  }

  static async begin(vm: BenchVm): Promise<Ssh> {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-ssh-"));
    const key = join(directory, "key");
    Bun.spawnSync(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]);
    chmodSync(key, 0o600);
    const { socket, device } = await vm.addPort("ssh");
    const publicKey = readFileSync(`${key}.pub`, "utf8").trim();
    await vm.sh(
      `ssh-keygen -A && mkdir -p -m 700 ~agent/.ssh /run/sshd && ` +
        `echo '${publicKey}' >~agent/.ssh/authorized_keys && chown -R agent ~agent/.ssh`,
    );
    const daemon = `exec /usr/sbin/sshd -i -o UsePAM=no -o MaxSessions=100 <>${device} >&0 2>/dev/null`;
    await vm.host.say("exec", "-d", vm.name, "--", "sudo", "sh", "-c", daemon);
    const ssh = new Ssh(directory, socket);
    await ssh.#spawn(["-fNM"]);
    return ssh;
  }

  run(...argv: string[]): Promise<void> {
    return this.#spawn([], argv);
  }

  end(): void {
    Bun.spawnSync(["ssh", ...this.#options, "-O", "exit"], { stderr: "ignore" });
    rmSync(this.#directory, { recursive: true });
  }

  async #spawn(flags: string[], argv: string[] = []): Promise<void> {
    const child = Bun.spawn(["ssh", ...flags, ...this.#options, ...argv], {
      stdio: ["ignore", "ignore", "inherit"],
      timeout: 120_000,
    });
    if ((await child.exited) !== 0) throw new Error(`ssh ${argv.join(" ")} failed`);
  }
}
