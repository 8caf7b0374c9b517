/**
 * The API over real HTTP on simulated machines: time passes as fast as everyone sleeps, or at its
 * own pace, and the appliance may crash under its clients.
 */

import { makeApiKey } from "../../src/api/api-keys.ts";
import { createApi } from "../../src/api/app.ts";
import type { Api, ApiPorts } from "../../src/api/ports.ts";
import { openHost } from "../../src/hosts/open.ts";
import { calm, type Weather } from "../simulation/weather.ts";
import { World } from "../simulation/world.ts";

export interface Simulated {
  world: World;
  url: string;
  secret: string;
  bugs: unknown[];
  stop(): void;
}

export interface SimulatedOptions {
  seed?: number;
  weather?: Weather;
  port?: number;
  /** Real milliseconds that pass for each simulated one. */
  pace?: number;
}

export async function serveSimulated(options: SimulatedOptions = {}): Promise<Simulated> {
  const { seed = 1, weather = calm, port = 0, pace = 0 } = options;
  const world = await World.begin(seed, weather);
  const bugs: unknown[] = [];
  const lives = new Lives(world, bugs);
  const pump = new Pump(world, pace);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 60,
    fetch: (request) => lives.answer(request),
  });
  const wanted = { name: "admin", scope: "admin" } as const;
  const { secret } = await world.db.write((tx) => makeApiKey(tx, world.ports, wanted));
  const stop = (): void => {
    pump.stop();
    void server.stop(true);
  };
  return { world, url: server.url.origin, secret, bugs, stop };
}

/** Each life of the appliance has its own API; who waits for a dead one is cut off. */
class Lives {
  readonly #world: World;
  readonly #bugs: unknown[];
  #life = 0;
  #api: Promise<Api> | undefined;

  constructor(world: World, bugs: unknown[]) {
    this.#world = world;
    this.#bugs = bugs;
  }

  async answer(request: Request): Promise<Response> {
    const { life } = this.#world;
    const answered = this.#current().then((api) => api.fetch(request));
    const died = async (): Promise<Response> => {
      while (this.#world.life === life) await Bun.sleep(5);
      return new Response("the server is gone", { status: 502 });
    };
    return Promise.race([answered, died()]);
  }

  #current(): Promise<Api> {
    if (this.#life !== this.#world.life || !this.#api) {
      this.#life = this.#world.life;
      this.#api = this.#make();
    }
    return this.#api;
  }

  async #make(): Promise<Api> {
    const { ports, random, clock, db } = this.#world;
    const rest: Omit<ApiPorts, keyof typeof ports> = {
      host: await openHost(db, clock, random),
      build: { version: "0.0.0-simulated", commit: "none" },
      defaultBase: undefined,
      onBug: (bug) => void this.#bugs.push(bug),
    };
    return createApi({ ...ports, ...rest });
  }
}

/** Lets time pass for as long as it runs. */
class Pump {
  #running = true;

  constructor(world: World, pace: number) {
    void this.#run(world, pace);
  }

  stop(): void {
    this.#running = false;
  }

  async #run({ clock }: World, pace: number): Promise<void> {
    while (this.#running) {
      const before = clock.now();
      await clock.advance();
      // Requests come over real sockets, which need real turns of the event loop.
      await Bun.sleep((clock.now() - before) * pace);
    }
  }
}

export interface Ran {
  code: number;
  stdout: Buffer;
  stderr: string;
}

/** Runs the command line against it, as a user would. */
export async function holdfast(
  { url, secret }: Pick<Simulated, "url" | "secret">,
  argv: readonly string[],
  stdin?: Uint8Array,
): Promise<Ran> {
  const child = Bun.spawn([process.execPath, "src/main.ts", ...argv], {
    env: { ...process.env, HOLDFAST_URL: url, HOLDFAST_API_KEY: secret, HOME: "/nonexistent" },
    stdin: stdin ?? "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).arrayBuffer(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, stdout: Buffer.from(stdout), stderr };
}
