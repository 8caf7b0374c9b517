/**
 * The guest's end of the channel as bytes: a virtio-serial device, or a unix socket in tests. The
 * host comes and goes; the port stays.
 */
import { closeSync, openSync, read, readdirSync, readFileSync, write } from "node:fs";
import { createServer, type Socket } from "node:net";
import { promisify } from "node:util";

export interface Port {
  /** Gives bytes as they come, for ever. */
  listen(take: (bytes: Uint8Array) => void): void;
  /**
   * Returns once the bytes are handed over and may change. What a host that left did not read is
   * lost.
   */
  write(bytes: Uint8Array): Promise<void>;
}

const readBytes = 64 * 1024;
/** How soon we look again for a host where none is connected. */
const absentMs = 50;

const readAsync = promisify(read);
const writeAsync = promisify(write);

/** The device of the port with this name, once the kernel has it. */
export function findDevice(name: string): string | undefined {
  const root = "/sys/class/virtio-ports";
  for (const port of listOf(root))
    if (readFileSync(`${root}/${port}/name`, "utf8").trim() === name) return `/dev/${port}`;
  return undefined;
}

function listOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

export class DevicePort implements Port {
  readonly #path: string;
  #fd: number;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, "r+");
  }

  listen(take: (bytes: Uint8Array) => void): void {
    void this.#readForever(take);
  }

  async #readForever(take: (bytes: Uint8Array) => void): Promise<never> {
    const buffer = new Uint8Array(readBytes);
    while (true) {
      // A read of nothing means that no host is connected.
      const bytesRead = await readAsync(this.#fd, buffer, 0, readBytes, null).then(
        (result) => result.bytesRead,
        () => -1,
      );
      if (bytesRead > 0) take(buffer.slice(0, bytesRead));
      else await Bun.sleep(absentMs);
      if (bytesRead < 0) this.#reopen();
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) {
      const written = await writeAsync(this.#fd, bytes, at, bytes.length - at, null).then(
        (result) => result.bytesWritten,
        () => -1,
      );
      if (written < 0) return Bun.sleep(absentMs);
      at += written;
    }
  }

  #reopen(): void {
    closeSync(this.#fd);
    this.#fd = openSync(this.#path, "r+");
  }
}

/** For tests without a VM: listens where the host connects. A newer connection replaces the older. */
export class SocketPort implements Port {
  readonly #path: string;
  #socket: Socket | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  listen(take: (bytes: Uint8Array) => void): void {
    createServer((socket) => {
      this.#socket?.destroy();
      this.#socket = socket;
      socket.on("data", (bytes: Buffer) => {
        if (socket === this.#socket) take(new Uint8Array(bytes));
      });
      // A host that is gone in mid-message is nothing special: another one comes.
      socket.on("error", () => socket.destroy());
    }).listen(this.#path);
  }

  async write(bytes: Uint8Array): Promise<void> {
    const socket = this.#socket;
    if (!socket || socket.destroyed) return Bun.sleep(absentMs);
    if (socket.write(bytes.slice())) return;
    await new Promise<void>((resolve) => {
      const go = (): void => {
        socket.off("drain", go).off("close", go);
        resolve();
      };
      socket.on("drain", go).on("close", go);
    });
  }
}
