/**
 * The guest's end of the channel as bytes: a unix socket, to which the bridge carries those of the
 * virtio-serial port. The host comes and goes; the port stays. Never reads a device itself: that
 * would hold a thread of the pool, and on one processor there are two.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import type { Socket } from "bun";

export interface Port {
  /** Gives bytes as they come, for ever. */
  listen(take: (bytes: Uint8Array) => void): void;
  /**
   * Returns once the bytes are handed over and may change. What a host that left did not read is
   * lost.
   */
  write(bytes: Uint8Array): Promise<void>;
}

/** How soon we look again where nobody is connected. */
const absentMs = 50;

/** The device of the port with this name, once the kernel has it. */
export function findDevice(name: string): string | undefined {
  const root = "/sys/class/virtio-ports";
  for (const port of existsSync(root) ? readdirSync(root) : [])
    if (readFileSync(`${root}/${port}/name`, "utf8").trim() === name) return `/dev/${port}`;
  return undefined;
}

/**
 * Listens for the bridge to the virtio-serial port, or for whatever else carries the host's bytes. A
 * newer connection replaces the older.
 */
export class SocketPort implements Port {
  readonly #path: string;
  #socket: Socket | undefined;
  #wake: () => void = () => {};

  constructor(path: string) {
    this.#path = path;
  }

  listen(take: (bytes: Uint8Array) => void): void {
    rmSync(this.#path, { force: true });
    const left = (socket: Socket): void => {
      if (socket === this.#socket) this.#socket = undefined;
      this.#wake();
    };
    Bun.listen({
      unix: this.#path,
      socket: {
        open: (socket) => {
          this.#socket?.terminate();
          this.#socket = socket;
        },
        data: (socket, bytes) => {
          if (socket === this.#socket) take(new Uint8Array(bytes));
        },
        drain: () => this.#wake(),
        close: left,
        error: left,
      },
    });
  }

  async write(bytes: Uint8Array): Promise<void> {
    const socket = this.#socket;
    if (!socket) return Bun.sleep(absentMs);
    let at = 0;
    while (socket === this.#socket) {
      // What the kernel has no room for is not kept by the socket: it is written once it has.
      at += Math.max(0, socket.write(bytes.subarray(at)));
      if (at === bytes.length) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
