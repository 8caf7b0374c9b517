/**
 * The real appliance: the built binary with a data directory of its own, on real VMs. Is killed and
 * started again as tests please; ends every VM it started.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findByArgument } from "../../src/vmm/launch/identity.ts";
import { testImages } from "./images.ts";

const binary = join(import.meta.dir, "..", "..", "dist", "holdfast");
const startMsMax = 60_000;

export interface Ran {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export class Appliance {
  readonly data: string;
  #serve: Bun.Subprocess | undefined;
  #url = "";

  private constructor(data: string) {
    this.data = data;
  }

  static async begin(): Promise<Appliance> {
    const data = mkdtempSync(join(tmpdir(), "holdfast-machine-"));
    symlinkSync(testImages().root, join(data, "images"));
    const appliance = new Appliance(data);
    await appliance.start();
    return appliance;
  }

  /** Where it was up before, on the same port. */
  async start(): Promise<void> {
    const port = this.#url === "" ? "0" : new URL(this.#url).port;
    const log = Bun.file(join(this.data, "serve.log"));
    rmSync(join(this.data, "serve.url"), { force: true });
    this.#serve = Bun.spawn([binary, "serve", "--data", this.data, "--port", port], {
      stdio: ["ignore", log, log],
    });
    const endAt = performance.now() + startMsMax;
    while (!existsSync(join(this.data, "serve.url"))) {
      if (performance.now() > endAt || this.#serve.exitCode !== null)
        throw new Error(`serve does not start: ${await log.text()}`);
      await Bun.sleep(20);
    }
    this.#url = readFileSync(join(this.data, "serve.url"), "utf8").trim();
  }

  get pid(): number {
    return this.#serve?.pid ?? -1;
  }

  /** As a power cut would end the process, but not the machine. */
  async kill(): Promise<void> {
    this.#serve?.kill("SIGKILL");
    await this.#serve?.exited;
  }

  /** As an upgrade ends it. */
  async terminate(): Promise<void> {
    this.#serve?.kill("SIGTERM");
    await this.#serve?.exited;
  }

  async isHealthy(): Promise<boolean> {
    return fetch(`${this.#url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  async run(...argv: string[]): Promise<Ran> {
    return this.runWith(undefined, ...argv);
  }

  async runWith(stdin: Uint8Array | undefined, ...argv: string[]): Promise<Ran> {
    const child = Bun.spawn([binary, ...argv], {
      env: { PATH: "/usr/bin:/bin", HOLDFAST_URL: this.#url, HOLDFAST_API_KEY: this.#key },
      stdio: [stdin ?? "ignore", "pipe", "pipe"],
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).arrayBuffer(),
      new Response(child.stderr).text(),
    ]);
    return { code: await child.exited, stdout: Buffer.from(stdout), stderr };
  }

  /** The standard output of what has to succeed. */
  async say(...argv: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...argv);
    if (code !== 0) throw new Error(`holdfast ${argv.join(" ")} ended with ${code}: ${stderr}`);
    return stdout.toString().trimEnd();
  }

  /** A resource of the API. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async get(path: string): Promise<any> {
    const headers = { authorization: `Bearer ${this.#key}` };
    const answer = await fetch(`${this.#url}${path}`, { headers });
    if (answer.status >= 500) throw new Error(`GET ${path}: ${await answer.text()}`);
    return answer.json();
  }

  /** A change, with a key of its own. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async post(path: string, body: unknown): Promise<any> {
    const headers = {
      authorization: `Bearer ${this.#key}`,
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID(),
    };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(`${this.#url}${path}`, init);
    if (!answer.ok) throw new Error(`POST ${path}: ${await answer.text()}`);
    return answer.json();
  }

  /** Asks again and again until the answer is as wanted. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async until(path: string, isWanted: (answer: any) => boolean, ms = 120_000): Promise<any> {
    const endAt = performance.now() + ms;
    while (performance.now() < endAt) {
      const answer = await this.get(path);
      if (isWanted(answer)) return answer;
      await Bun.sleep(100);
    }
    throw new Error(`${path} stays ${JSON.stringify(await this.get(path))}`);
  }

  /** Process ids of the sandbox's VM. */
  vmsOf(sandbox: string): number[] {
    return findByArgument("guest=holdfast:")
      .filter(({ argv }) => argv[0]?.includes("qemu") && argv.some((arg) => arg.includes(sandbox)))
      .map(({ identity }) => identity.pid);
  }

  async end(): Promise<void> {
    await this.run("stop", "--all");
    await this.kill();
    const mine = findByArgument("guest=holdfast:").filter(({ argv }) =>
      argv.some((arg) => arg.includes(this.data)),
    );
    for (const { identity } of mine) process.kill(identity.pid, "SIGKILL");
    rmSync(this.data, { recursive: true });
  }

  get #key(): string {
    return readFileSync(join(this.data, "admin.key"), "utf8").trim();
  }
}
