/**
 * What can go wrong outside our code, as one closed list. This table is the only place that says
 * what a kind means to a client, to a retry and to a shell.
 */
export const faultKinds = {
  invalid: { status: 422, retry: false, exit: 2 },
  malformed: { status: 400, retry: false, exit: 2 },
  unauthenticated: { status: 401, retry: false, exit: 4 },
  denied: { status: 403, retry: false, exit: 4 },
  missing: { status: 404, retry: false, exit: 1 },
  conflict: { status: 409, retry: false, exit: 1 },
  quota: { status: 429, retry: true, exit: 1 },
  full: { status: 503, retry: true, exit: 1 },
  unsupported: { status: 422, retry: false, exit: 1 },
  unavailable: { status: 503, retry: true, exit: 1 },
  broken: { status: 500, retry: false, exit: 1 },
} as const;

export type FaultKind = keyof typeof faultKinds;

export interface FaultOptions {
  /** Stable machine-readable name, a client's contract. Without one, the kind stands in. */
  code?: string;
  /** What the person reading this can do next, ideally a command to type. */
  hint?: string;
  /** Machine-readable facts for the client. Never a secret. */
  details?: Readonly<Record<string, unknown>>;
  retryAfterSeconds?: number;
  /** Logged, never sent. */
  cause?: unknown;
}

/** The world's fault, not ours. `message` says the operation and its object, without a full stop. */
export class Fault extends Error {
  override name = "Fault";
  readonly kind: FaultKind;
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: FaultKind, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause });
    this.kind = kind;
    this.code = options.code ?? kind;
    this.hint = options.hint;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get retriable(): boolean {
    return faultKinds[this.kind].retry;
  }
}
