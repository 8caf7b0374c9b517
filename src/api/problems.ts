/**
 * Every answer that is not a success, as a problem document (RFC 9457). A cause is logged and never
 * sent; what is not a Fault is our own mistake and ends the process after the answer.
 */
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { Fault, type FaultKind, faultKinds } from "../core/fault.ts";
import { faultOf } from "../db/sqlite.ts";
import type { ApiContext, ApiPorts } from "./ports.ts";

export interface FieldError {
  /** JSON pointer into the body, or `query:name`. */
  pointer: string;
  detail: string;
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  hint?: string;
  details?: Readonly<Record<string, unknown>>;
  errors?: readonly FieldError[];
  request_id: string;
}

const titles: Readonly<Record<FaultKind, string>> = {
  invalid: "The request cannot be carried out as it is",
  malformed: "The request is malformed",
  unauthenticated: "An API key is needed",
  denied: "The API key may not do this",
  missing: "Not found",
  conflict: "The present state does not allow it",
  quota: "A limit is reached",
  full: "There is no room",
  unsupported: "This deployment does not offer it",
  unavailable: "Temporarily unavailable",
  broken: "Something on the host is damaged",
};

/** For what only HTTP itself can refuse; the closed list of faults knows no such status. */
export class HttpRefusal extends Fault {
  override name = "HttpRefusal";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, fault: Fault, headers: Readonly<Record<string, string>> = {}) {
    super(fault.kind, fault.message, { code: fault.code, ...(fault.hint && { hint: fault.hint }) });
    this.status = status;
    this.headers = headers;
  }
}

/** Turns whatever was thrown into an answer. A bug is answered, logged, and handed to `onBug`. */
export function answerError(error: unknown, c: ApiContext, ports: ApiPorts): Response {
  const fault = faultFrom(error);
  if (fault) {
    if (faultKinds[fault.kind].status >= 500)
      ports.log.error("a request failed", fault, { request_id: c.get("requestId") });
    return answerFault(c, fault);
  }
  ports.log.error("a bug", error, { request_id: c.get("requestId"), path: c.req.path });
  ports.onBug(error);
  const bug = new Fault("broken", "Holdfast made a mistake while it answered", {
    code: "internal_error",
    hint: "send it again with the same Idempotency-Key; the log has the details",
  });
  return answerFault(c, bug);
}

function faultFrom(error: unknown): Fault | undefined {
  const known = faultOf(error);
  if (known instanceof Fault) return known;
  if (known instanceof HTTPException) return faultOfHttp(known);
  return undefined;
}

/** What the framework's own checks throw. */
function faultOfHttp(error: HTTPException): Fault {
  if (error.status === 415) return unsupportedMediaType();
  return new Fault("malformed", "the request cannot be read", { cause: error });
}

export function unsupportedMediaType(): Fault {
  const fault = new Fault("malformed", "the body's media type is not taken here", {
    code: "unsupported_media_type",
    hint: "send JSON with the header: Content-Type: application/json",
  });
  return new HttpRefusal(415, fault);
}

/** `Retry-After` where trying again can help. */
export function answerFault(c: ApiContext, fault: Fault): Response {
  const problem = problemOf(fault, c.get("requestId") ?? "");
  const retryAfter = fault.retryAfterSeconds ?? (fault.retriable ? 1 : undefined);
  if (retryAfter !== undefined) c.header("Retry-After", String(retryAfter));
  if (fault instanceof HttpRefusal)
    for (const [name, value] of Object.entries(fault.headers)) c.header(name, value);
  c.header("Content-Type", "application/problem+json");
  return c.body(JSON.stringify(problem), problem.status as ContentfulStatusCode);
}

function problemOf(fault: Fault, requestId: string): Problem {
  const { errors, ...details } = fault.details ?? {};
  return {
    type: `urn:holdfast:problem:${fault.code}`,
    title: titles[fault.kind],
    status: fault instanceof HttpRefusal ? fault.status : faultKinds[fault.kind].status,
    code: fault.code,
    detail: /[.?!]$/.test(fault.message) ? fault.message : `${fault.message}.`,
    ...(fault.hint !== undefined && { hint: fault.hint }),
    ...(Object.keys(details).length > 0 && { details }),
    ...(Array.isArray(errors) && { errors: errors as FieldError[] }),
    request_id: requestId,
  };
}
