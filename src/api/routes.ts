/**
 * What every route under /v1 has in common: a scope, problem documents, and for a change an
 * idempotency key and a bounded body. No route there is made in any other way.
 */
import { createRoute, OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { createMiddleware } from "hono/factory";
import type { ZodError } from "zod";
import { Fault } from "../core/fault.ts";
import { checkScope, requireScope } from "./auth.ts";
import { readJson } from "./body.ts";
import { checkKey } from "./idempotency.ts";
import type { ApiEnv } from "./ports.ts";
import type { FieldError } from "./problems.ts";
import type { Scope } from "./store.ts";
import { checkOffered } from "./unsupported.ts";

type Parts = Omit<RouteConfig, "middleware" | "security">;

/** A read: needs the scope `read`, which every API key has, unless told. */
export function reading<P extends string, R extends Parts & { path: P }>(route: R, scope?: Scope) {
  return secured(route, scope ?? "read", scope ? [requireScope(scope)] : []);
}

/** A change with a JSON body or none: needs the scope `operate` unless told. */
export function changing<P extends string, R extends Parts & { path: P }>(route: R, scope?: Scope) {
  const needed = scope ?? "operate";
  return secured(route, needed, [checking(needed, route.path)]);
}

/** All that comes before a change's own schema, in one piece of middleware: each costs every request. */
const checking = (needed: Scope, path: string) =>
  createMiddleware<ApiEnv>(async (c, next) => {
    checkScope(c, needed);
    checkKey(c);
    await readJson(c);
    checkOffered(path, c.get("json"));
    await next();
  });

/** A change whose pieces carry their own sequence numbers instead of a key. */
export function sequenced<P extends string, R extends Parts & { path: P }>(route: R) {
  return secured(route, "operate", [requireScope("operate")]);
}

function secured<R extends Parts>(
  route: R,
  scope: Scope,
  middleware: Exclude<RouteConfig["middleware"], undefined>,
) {
  const made = createRoute({ ...route, security: [{ apiKey: [] }], "x-scope": scope, middleware });
  // The middleware's own types would only slow the compiler down.
  return made as unknown as R & { getRoutingPath(): string };
}

/** A part of the API, for one noun. */
export const makeApp = () =>
  new OpenAPIHono<ApiEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalid(result.error, result.target);
    },
  });

/** A path that names nothing is not found; everything else tells which field is wrong. */
function invalid(error: ZodError, target: string): Fault {
  if (target === "param")
    return new Fault("missing", "nothing has this id or name", { code: "not_found" });
  const errors = error.issues.flatMap((issue) => fieldErrors(issue, target));
  const first = errors[0];
  return new Fault(
    "invalid",
    first ? `${first.pointer || "the body"}: ${first.detail}` : "invalid request",
    {
      code: "invalid_request",
      details: { errors: errors.slice(0, 20) },
    },
  );
}

function fieldErrors(issue: ZodError["issues"][number], target: string): FieldError[] {
  // One unknown name is pointed at itself; several, at what holds them.
  const unknown = issue.code === "unrecognized_keys" && issue.keys.length === 1 ? issue.keys : [];
  const path = [...issue.path, ...unknown].map(String);
  const escaped = path.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  const pointer = target === "json" ? escaped.join("") : `${target}:${path.join(".")}`;
  return [{ pointer: pointer.slice(0, 200), detail: issue.message }];
}
