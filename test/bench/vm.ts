/**
 * A VM of the appliance as the benchmark needs it: with a second port of the same kind hot-plugged,
 * on which ssh and plain bytes can be compared with our own channel.
 */
import { readlinkSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Appliance } from "../machine/appliance.ts";

export class BenchVm {
  readonly host: Appliance;
  readonly name: string;
  #runDirectory = "";

  private constructor(host: Appliance, name: string) {
    this.host = host;
    this.name = name;
  }

  /** Running. @param size of the sandbox. */
  static async begin(size: string, host?: Appliance): Promise<BenchVm> {
    const vm = new BenchVm(host ?? (await Appliance.begin()), "bench");
    await vm.host.say("create", vm.name, "--size", size, "--start");
    const { id } = await vm.host.until("/v1/sandboxes/bench", ({ phase }) => phase === "running");
    const [pid] = vm.host.vmsOf(id);
    vm.#runDirectory = readlinkSync(`/proc/${pid}/cwd`);
    return vm;
  }

  sh(script: string): Promise<string> {
    return this.host.say("exec", this.name, "--", "sudo", "sh", "-c", script);
  }

  /** Returns the host's socket and the guest's device. */
  async addPort(name: string): Promise<{ socket: string; device: string }> {
    const qmp = join(this.#runDirectory, "qmp");
    const path = join(this.#runDirectory, name);
    const address = { type: "unix", data: { path } };
    const backend = { type: "socket", data: { addr: address, server: true, wait: false } };
    await ask(qmp, "chardev-add", { id: name, backend });
    await ask(qmp, "device_add", { driver: "virtserialport", chardev: name, name });
    const script = `for p in /sys/class/virtio-ports/*; do [ "$(cat $p/name)" = ${name} ] && echo /dev/\${p##*/}; done`;
    for (let tries = 0; tries < 20; tries++) {
      const device = await this.sh(script);
      if (device !== "") return { socket: path, device };
      await Bun.sleep(200);
    }
    throw new Error(`the guest sees no port "${name}"`);
  }
}

/** One command with arguments; QEMU Machine Protocol. */
function ask(path: string, execute: string, values: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    let text = "";
    const messages = [{ execute: "qmp_capabilities" }, { execute, arguments: values }];
    socket.on("error", reject);
    socket.on("data", (bytes) => {
      text += bytes.toString();
      const lines = text
        .split("\n")
        .filter((line) => line.includes('"return"') || line.includes('"error"'));
      const next = messages.shift();
      if (next) socket.write(`${JSON.stringify(next)}\n`);
      if (lines.length < 2) return;
      socket.destroy();
      if (lines[1]?.includes('"error"')) reject(new Error(lines[1]));
      else resolve();
    });
  });
}
