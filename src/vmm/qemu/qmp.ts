/**
 * One question to a QEMU over its control socket, then hang up: only one client is served at a time.
 * Bounded in time and size, for a guest may have taken over its QEMU.
 */
import { connect, type Socket } from "node:net";
import { z } from "zod";
import { Fault } from "../../core/fault.ts";
import { KiB, secondMs } from "../../core/units.ts";
import type { Clock } from "../../system/clock.ts";

const answerMs = 5 * secondMs;
const answerBytesMax = 256 * KiB;

/** QEMU Machine Protocol specification. Events come at any time between the others. */
const lineSchema = z.union([
  z.object({ QMP: z.object({}) }),
  z.object({ event: z.string() }),
  z.object({ return: z.unknown() }),
  z.object({ error: z.object({ class: z.string(), desc: z.string().max(4096) }) }),
]);
type Line = z.infer<typeof lineSchema>;

/**
 * What QEMU returns to this command; the caller parses it.
 * @throws Fault `unavailable` no QEMU there, no answer in 5 s, or a refusal in its words.
 */
export async function askQemu(path: string, command: string, clock: Clock): Promise<unknown> {
  const connection = new Connection(path);
  try {
    const answer = converse(connection, command);
    const late = clock.sleep(answerMs).then((): never => {
      throw new Fault("unavailable", `QEMU gives no answer on ${path}`, { code: "qmp_silent" });
    });
    return await Promise.race([answer, late]);
  } finally {
    connection.close();
  }
}

async function converse(connection: Connection, command: string): Promise<unknown> {
  await connection.next((line) => "QMP" in line);
  await ask(connection, "qmp_capabilities");
  return ask(connection, command);
}

async function ask(connection: Connection, command: string): Promise<unknown> {
  connection.send({ execute: command });
  const line = await connection.next((each) => "return" in each || "error" in each);
  if ("return" in line) return line.return;
  const words = "error" in line ? line.error.desc : "";
  throw new Fault("unavailable", `QEMU refuses ${command}: ${words}`, { code: "qmp_refused" });
}

class Connection {
  readonly #path: string;
  readonly #socket: Socket;
  readonly #lines: Line[] = [];
  #text = "";
  #ended: Error | undefined;
  #wake: () => void = () => {};

  constructor(path: string) {
    this.#path = path;
    this.#socket = connect({ path });
    this.#socket.setEncoding("utf8");
    this.#socket.on("data", (text: string) => this.#take(text));
    this.#socket.on("error", (error) => this.#end(error));
    this.#socket.on("close", () => this.#end(new Error("closed")));
  }

  send(message: object): void {
    if (!this.#ended) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  async next(wanted: (line: Line) => boolean): Promise<Line> {
    while (true) {
      for (let line = this.#lines.shift(); line; line = this.#lines.shift())
        if (wanted(line)) return line;
      if (this.#ended)
        throw new Fault("unavailable", `QEMU does not answer on ${this.#path}`, {
          code: "qmp_absent",
          cause: this.#ended,
        });
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(text: string): void {
    this.#text += text;
    const parts = this.#text.split("\n");
    this.#text = parts.pop() ?? "";
    if (this.#text.length + this.#lines.length * KiB > answerBytesMax)
      return this.#end(new Error("too long an answer"));
    for (const part of parts) this.#parse(part);
    this.#wake();
  }

  #parse(part: string): void {
    if (part.trim() === "") return;
    try {
      this.#lines.push(lineSchema.parse(JSON.parse(part)));
    } catch (cause) {
      this.#end(new Error("not a QMP message", { cause }));
    }
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#socket.destroy();
    this.#wake();
  }
}
