/** Requests per second on one core, against Hono alone with the same writes to SQLite. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestsPerSecond } from "./load.ts";
import { type Group, inPairs, median } from "./rows.ts";

/** Short and many: a machine that is slow for a second is then slow for both of a pair. */
const pairs = 25;
const ms = 400;
const connections = 32;

export const api: Group = async (say) => {
  const [ours, bare] = [await Server.begin("ours"), await Server.begin("bare")];
  try {
    // Both are warm before anything counts.
    for (const server of [ours, bare]) await Promise.all([server.reads(), server.writes()]);
    const reads = await inPairs(
      pairs,
      () => ours.reads(),
      () => bare.reads(),
    );
    say("reads are measured");
    const writes = await inPairs(
      pairs,
      () => ours.writes(),
      () => bare.writes(),
    );
    return [...rowsOf("reads", reads, 0.3), ...rowsOf("durable accepted commands", writes, 0.5)];
  } finally {
    ours.end();
    bare.end();
  }
};

function rowsOf(what: string, rates: { ours: number[]; theirs: number[] }, atLeast: number) {
  const [a, b] = [median(rates.ours), median(rates.theirs)];
  const ratio = median(rates.ours.map((rate, at) => rate / (rates.theirs[at] ?? Number.NaN)));
  const group = "api";
  return [
    { group, what, value: a, unit: "/s" },
    { group, what: `${what}, bare Hono`, value: b, unit: "/s" },
    { group, what: `${what} / bare`, value: ratio, unit: "x", bar: { atLeast } },
  ];
}

class Server {
  readonly #child: Bun.Subprocess;
  readonly #directory: string;
  readonly #port: number;
  readonly #secret: string;
  readonly #sandboxes: readonly string[];
  #keys = 0;

  private constructor(child: Bun.Subprocess, directory: string, said: string) {
    const { url, secret, sandboxes } = JSON.parse(said);
    this.#child = child;
    this.#directory = directory;
    this.#port = Number(new URL(url).port);
    this.#secret = secret;
    this.#sandboxes = sandboxes;
  }

  /** On the first core; the client has the others. */
  static async begin(kind: "ours" | "bare"): Promise<Server> {
    const directory = mkdtempSync(join(tmpdir(), `holdfast-bench-${kind}-`));
    const program = [process.execPath, join(import.meta.dir, "api-server.ts"), kind, directory];
    const child = Bun.spawn(["taskset", "-c", "0", ...program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const reader = child.stdout.getReader();
    let said = "";
    while (!said.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`the server "${kind}" did not start`);
      said += new TextDecoder().decode(value);
    }
    return new Server(child, directory, said);
  }

  reads(): Promise<number> {
    return this.#load((n) => {
      const id = this.#sandboxes[n % this.#sandboxes.length];
      return this.#text("GET", `/v1/sandboxes/${id}`);
    });
  }

  writes(): Promise<number> {
    return this.#load((n) => {
      const id = this.#sandboxes[n % this.#sandboxes.length];
      const body = JSON.stringify({ argv: ["make", "test"] });
      return this.#text("POST", `/v1/sandboxes/${id}/commands`, body);
    });
  }

  end(): void {
    this.#child.kill("SIGKILL");
    rmSync(this.#directory, { recursive: true });
  }

  #load(request: (n: number) => string): Promise<number> {
    return requestsPerSecond({ port: this.#port, connections, ms, request });
  }

  #text(method: string, path: string, body = ""): string {
    const key = String(this.#keys++).padStart(26, "0");
    const head = [
      ...[`${method} ${path} HTTP/1.1`, "Host: bench", `Authorization: Bearer ${this.#secret}`],
      ...[`Idempotency-Key: ${key}`, `Content-Length: ${Buffer.byteLength(body)}`],
      ...(body === "" ? [] : ["Content-Type: application/json"]),
    ];
    return `${head.join("\r\n")}\r\n\r\n${body}`;
  }
}
