/**
 * The API as the command line uses it: found by the environment, the configuration or the data
 * directory of this machine; lost connections are tried again with the same idempotency key.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { hc } from "hono/client";
import type {
  ApiKeysApi,
  BasesApi,
  CommandsApi,
  EventsApi,
  OperationsApi,
  OutputApi,
  SandboxesApi,
  SizesApi,
  SystemApi,
} from "../api/app.ts";
import type { Problem } from "../api/problems.ts";

export const defaultUrl = "http://127.0.0.1:8440";
export const defaultData = "/var/lib/holdfast";

/** The API said no, or did not answer; exit codes follow from its status. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }

  get exitCode(): number {
    return this.problem.status === 401 || this.problem.status === 403 ? 4 : 1;
  }
}

export interface Target {
  url: string;
  apiKey: string | undefined;
}

interface Config {
  url?: string;
  api_key?: string;
}

/** Where to ask, and as whom. The local admin key is never sent to an address told otherwise. */
export function findTarget(flags: { url: string | undefined; data: string | undefined }): Target {
  const { HOLDFAST_URL, HOLDFAST_API_KEY, HOME = "" } = process.env;
  const config = readConfig(join(HOME, ".config/holdfast/config.json"));
  const told = flags.url ?? (flags.data === undefined ? (HOLDFAST_URL ?? config.url) : undefined);
  const data = dataDirectory(flags.data);
  const url = told ?? localUrl(data) ?? defaultUrl;
  const ours = flags.data === undefined ? (HOLDFAST_API_KEY ?? config.api_key) : undefined;
  const local = told === undefined || told === localUrl(data) ? localKey(data) : undefined;
  return { url: url.replace(/\/+$/, ""), apiKey: ours ?? local };
}

/** A binary that `up` put into a data directory belongs to that one. */
/** As told; else the one this binary was installed in; else the default. */
export function dataDirectory(told: string | undefined): string {
  if (told !== undefined) return told;
  const beside = dirname(dirname(process.execPath));
  return existsSync(join(beside, "admin.key")) ? beside : defaultData;
}

const localUrl = (data: string): string | undefined => readable(join(data, "serve.url"));
const localKey = (data: string): string | undefined => readable(join(data, "admin.key"));

/** Undefined when it is not there or not for this user. */
function readable(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}

function readConfig(path: string): Config {
  const text = readable(path);
  return text === undefined ? {} : (JSON.parse(text) as Config);
}

export interface ClientOptions {
  /** How long a lost connection is tried again. */
  patienceMs?: number;
  /** Told once per loss. */
  onLost?: () => void;
}

export type Client = ReturnType<typeof makeClient>;

export function makeClient(target: Target, options: ClientOptions = {}) {
  const request = (path: string, init: RequestInit = {}): Promise<Response> =>
    send(target, new Request(target.url + path, init), options);
  const settings = {
    fetch: (input: string | URL | Request, init?: RequestInit) =>
      send(target, new Request(input, init), options, wholeOf),
  };
  const { url } = target;
  return {
    request,
    sandboxes: hc<SandboxesApi>(url, settings).v1.sandboxes,
    sent: hc<CommandsApi>(url, settings).v1.sandboxes,
    commands: hc<CommandsApi>(url, settings).v1.commands,
    events: hc<EventsApi>(url, settings).v1.events,
    output: hc<OutputApi>(url, settings).v1.commands,
    operations: hc<OperationsApi>(url, settings).v1.operations,
    apiKeys: hc<ApiKeysApi>(url, settings).v1["api-keys"],
    sizes: hc<SizesApi>(url, settings).v1.sizes,
    bases: hc<BasesApi>(url, settings).v1.bases,
    system: hc<SystemApi>(url, settings).v1.system,
  };
}

/** A new change's key; every retry of that change carries the same. */
export const newKey = () => ({ "idempotency-key": crypto.randomUUID() });

const pauseFirstMs = 100;
const pauseMaxMs = 2_000;

/** @throws Refusal for every answer that is not a success. */
async function send(
  target: Target,
  request: Request,
  options: ClientOptions,
  take: (answer: Response) => Response | Promise<Response> = (answer) => answer,
): Promise<Response> {
  const { patienceMs = 5_000, onLost } = options;
  if (target.apiKey) request.headers.set("authorization", `Bearer ${target.apiKey}`);
  const body = request.body === null ? undefined : await request.arrayBuffer();
  const { method, headers, signal } = request;
  const endAt = performance.now() + patienceMs;
  for (let pauseMs = pauseFirstMs; ; pauseMs = Math.min(pauseMs * 2, pauseMaxMs)) {
    const init = { method, headers, signal, ...(body && { body }) };
    const answer = await fetch(request.url, init)
      .then(take)
      .catch((error: unknown) => lost(error, target));
    if (answer instanceof Response && answer.ok) return answer;
    const refusal = answer instanceof Response ? await refusalOf(answer) : answer;
    if (!mayPass(refusal) || performance.now() > endAt) throw refusal;
    if (pauseMs === pauseFirstMs) onLost?.();
    await Bun.sleep(pauseMs);
  }
}

/** Read here, so that an answer that is cut off is asked for again. */
async function wholeOf(answer: Response): Promise<Response> {
  const { status, headers } = answer;
  return new Response(await answer.arrayBuffer(), { status, headers });
}

/** Worth sending again unchanged: nobody answered, or the answer says so. */
function mayPass({ problem }: Refusal): boolean {
  const codes = ["unreachable", "unavailable", "idempotency_in_progress", "internal_error"];
  return codes.includes(problem.code) || [502, 504].includes(problem.status);
}

async function refusalOf(answer: Response): Promise<Refusal> {
  const text = await answer.text();
  if (answer.headers.get("content-type")?.includes("problem+json"))
    return new Refusal(JSON.parse(text) as Problem);
  return localRefusal("unexpected_answer", `the answer was ${answer.status}`, answer.status);
}

function lost(error: unknown, { url }: Target): Refusal {
  if (!(error instanceof Error)) throw error;
  if (error.name === "AbortError") throw error;
  return localRefusal("unreachable", `nothing answers on ${url}`, 503);
}

function localRefusal(code: string, detail: string, status: number): Refusal {
  return new Refusal({
    type: `urn:holdfast:problem:${code}`,
    title: "No answer from Holdfast",
    status,
    code,
    detail,
    hint: "is `holdfast serve` running there? HOLDFAST_URL says where to ask",
    request_id: "",
  });
}
