/**
 * The HTTP API, put together. Under /v1 every request is authenticated before anything else is
 * said, and every answer that is not a success is a problem document.
 */
import { OpenAPIHono } from "@hono/zod-openapi";
import { createMiddleware } from "hono/factory";
import { routePath } from "hono/route";
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import { apiKeyRoutes } from "./api-keys.ts";
import { authenticate, KnownKeys, requireScope } from "./auth.ts";
import { baseRoutes } from "./bases.ts";
import { commandRoutes } from "./commands.ts";
import { docsPage, llmsText, openApiDocument } from "./docs.ts";
import { eventRoutes } from "./events.ts";
import { makePatience } from "./idempotency.ts";
import { metricsText, RequestCounts } from "./metrics.ts";
import { operationRoutes } from "./operations.ts";
import { outputRoutes } from "./output.ts";
import type { Api, ApiEnv, ApiPorts } from "./ports.ts";
import { answerError, HttpRefusal } from "./problems.ts";
import { checkReadiness } from "./readiness.ts";
import { sandboxRoutes } from "./sandboxes.ts";
import { problemSchema } from "./schemas.ts";
import { sizeRoutes } from "./sizes.ts";
import { systemRoutes } from "./system.ts";
import { unsupported, unsupportedRoutes } from "./unsupported.ts";

/** The parts that typed clients are made for, one type each so that the compiler stays quick. */
export type SandboxesApi = ReturnType<typeof sandboxRoutes>;
export type CommandsApi = ReturnType<typeof commandRoutes>;
export type OutputApi = ReturnType<typeof outputRoutes>;
export type EventsApi = ReturnType<typeof eventRoutes>;
export type OperationsApi = ReturnType<typeof operationRoutes>;
export type SystemApi = ReturnType<typeof systemRoutes>;
export type ApiKeysApi = ReturnType<typeof apiKeyRoutes>;
export type SizesApi = ReturnType<typeof sizeRoutes>;
export type BasesApi = ReturnType<typeof baseRoutes>;

/** Makes the whole API. Holds nothing but counters; several may live in one process. */
export function createApi(ports: ApiPorts): Api {
  const requests = new RequestCounts();
  const app: Api = new OpenAPIHono<ApiEnv>();
  app.use(followRequest(ports, requests));
  const keys = new KnownKeys();
  app.use("/v1/*", authenticate(ports, keys));
  for (const part of partsOf(ports, keys)) app.route("/", part);
  for (const [path, missing] of Object.entries(unsupportedRoutes))
    app.all(`/v1${path}`, () => {
      throw unsupported(missing, `this route is not offered here: ${missing.why}`);
    });
  app.openAPIRegistry.register("Problem", problemSchema);
  addOpenRoutes(app, ports, { requests, keys });
  app.notFound((c) => {
    throw refusalOf(app, c.req.method, c.req.path);
  });
  app.onError((error, c) => answerError(error, c, ports));
  return app;
}

function partsOf(ports: ApiPorts, keys: KnownKeys) {
  return [
    sandboxRoutes(ports),
    commandRoutes(ports),
    outputRoutes(ports),
    operationRoutes(ports),
    eventRoutes(ports),
    sizeRoutes(ports),
    baseRoutes(ports),
    apiKeyRoutes(ports, keys),
    systemRoutes(ports, ports.clock.now()),
  ] as unknown as Api[];
}

/** What supervisors, tools and readers ask; none of it tells anything about a sandbox. */
interface Kept {
  readonly requests: RequestCounts;
  readonly keys: KnownKeys;
}

function addOpenRoutes(app: Api, ports: ApiPorts, { requests, keys }: Kept): void {
  app.get("/", (c) => c.redirect("docs"));
  app.get("/healthz", (c) => c.json({ ok: true, version: ports.build.version }));
  app.get("/readyz", async (c) => {
    const checks = await checkReadiness(ports);
    const ok = checks.every((check) => check.ok);
    return c.json({ ok, checks }, ok ? 200 : 503);
  });
  app.get("/openapi.json", (c) => c.json(openApiDocument(app, ports.build)));
  app.get("/docs", (c) => c.html(docsPage(openApiDocument(app, ports.build))));
  app.get("/llms.txt", (c) => c.text(llmsText(openApiDocument(app, ports.build))));
  app.get("/metrics", authenticate(ports, keys), requireScope("read"), async (c) => {
    c.header("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    return c.body(await metricsText(ports, requests));
  });
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Counts a request, and names it in its answer: it keeps the id its sender gave it, so that both
 * logs can be put side by side.
 */
function followRequest({ clock, random }: ApiPorts, requests: RequestCounts) {
  const patience = makePatience(clock);
  return createMiddleware<ApiEnv>(async (c, next) => {
    const given = c.req.header("x-request-id");
    const own = (): string => makeId("request", clock.now(), random.bytes(10));
    const id = given !== undefined && requestIdPattern.test(given) ? given : own();
    c.set("requestId", id);
    c.set("patience", patience);
    await next();
    const { headers, status } = c.res;
    headers.set("X-Request-Id", id);
    headers.set("X-Content-Type-Options", "nosniff");
    if (!headers.has("Cache-Control")) headers.set("Cache-Control", "no-store");
    requests.add({ method: c.req.method, route: routePath(c, -1).replaceAll('"', ""), status });
  });
}

/** 405 with `Allow` where the path exists for other methods, else 404. */
function refusalOf(app: Api, method: string, path: string): Fault {
  const allowed = app.openAPIRegistry.definitions.flatMap((definition) => {
    if (definition.type !== "route") return [];
    const pattern = definition.route.path.replaceAll(/\{[^}]+\}/g, "[^/]+");
    return new RegExp(`^${pattern}$`).test(path) ? [definition.route.method.toUpperCase()] : [];
  });
  if (allowed.length === 0)
    return new Fault("missing", `there is no ${path.slice(0, 200)}`, {
      code: "route_not_found",
      hint: "/openapi.json and /docs list what there is",
    });
  const allow = (allowed.includes("GET") ? [...allowed, "HEAD"] : allowed).toSorted().join(", ");
  const fault = new Fault("malformed", `${path.slice(0, 200)} does not take ${method}`, {
    code: "method_not_allowed",
    hint: `it takes ${allow}`,
  });
  return new HttpRefusal(405, fault, { Allow: allow });
}
