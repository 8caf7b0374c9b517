/**
 * The guest's end of the channel: a unix socket, to which the bridge carries the bytes of the
 * virtio-serial port. The host comes and goes; the port stays. Never reads a device itself: that
 * would hold a thread of the pool, and on one processor there are two.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import type { Socket } from "bun";
import { bytesRecord, type Pull, pullRecord, RecordReader } from "./records.ts";

export interface Port {
  /** Gives bytes as they come, for ever. */
  listen(take: (bytes: Uint8Array) => void): void;
  /** Returns once the bytes are handed over. What a host that left did not read is lost. */
  write(bytes: Uint8Array): Promise<void>;
  /** Returns the offset that was reached, undefined where the bridge is gone. One at a time. */
  pull(pull: Pull): Promise<number | undefined>;
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

/** Listens for the bridge; a newer one replaces the older. */
export class SocketPort implements Port {
  readonly #path: string;
  #socket: Socket | undefined;
  #wake: () => void = () => {};
  #reached: (offset: number | undefined) => void = () => {};

  constructor(path: string) {
    this.#path = path;
  }

  listen(take: (bytes: Uint8Array) => void): void {
    rmSync(this.#path, { force: true });
    let reader: RecordReader;
    const left = (socket: Socket): void => {
      if (socket === this.#socket) this.#socket = undefined;
      this.#wake();
      this.#reached(undefined);
    };
    Bun.listen({
      unix: this.#path,
      socket: {
        open: (socket) => {
          this.#socket?.terminate();
          this.#socket = socket;
          const reached = (offset: number): void => this.#reached(offset);
          reader = new RecordReader({ bytes: take, reached });
        },
        data: (socket, bytes) => {
          if (socket === this.#socket) reader.push(new Uint8Array(bytes));
        },
        drain: () => this.#wake(),
        close: left,
        error: left,
      },
    });
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#write(bytesRecord(bytes));
  }

  async pull(pull: Pull): Promise<number | undefined> {
    if (!this.#socket) return undefined;
    const reached = new Promise<number | undefined>((resolve) => {
      this.#reached = resolve;
    });
    await this.#write(pullRecord(pull));
    return reached;
  }

  async #write(bytes: Uint8Array): Promise<void> {
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
