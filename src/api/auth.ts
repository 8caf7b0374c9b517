/**
 * Who asks, and what they may do. A secret is looked up by its SHA-256, so that how long a look takes
 * tells nothing about it; it is never logged, stored or sent back.
 */
import { hash } from "node:crypto";
import { createMiddleware } from "hono/factory";
import { Fault } from "../core/fault.ts";
import type { Random } from "../system/random.ts";
import type { ApiContext, ApiEnv, ApiPorts } from "./ports.ts";
import { type ApiKeyRow, findApiKey, type Scope } from "./store.ts";

const secretPrefix = "hf_";
const secretPattern = /^hf_[A-Za-z0-9_-]{43}$/;
/** Each scope may do what those behind it may. */
const scopes: readonly Scope[] = ["admin", "operate", "read"];

/** 256 random bits, recognisable as ours to secret scanners. */
export function makeSecret(random: Random): string {
  return secretPrefix + Buffer.from(random.bytes(32)).toString("base64url");
}

export function hashSecret(secret: string): Uint8Array {
  return Buffer.from(digestOf(secret), "base64");
}

const digestOf = (secret: string): string => hash("sha256", secret, "base64");

const knownMax = 1_000;

/**
 * Keys that were found before, by the hash of their secret: every request would read the same row.
 * This process is the only one that revokes; after that it has to forget.
 */
export class KnownKeys {
  readonly #found = new Map<string, ApiKeyRow>();
  #revocations = 0;

  /** Undefined for one that nothing knows, or that was revoked. */
  async find(ports: ApiPorts, secret: string): Promise<ApiKeyRow | undefined> {
    if (!secretPattern.test(secret)) return undefined;
    const digest = digestOf(secret);
    const known = this.#found.get(digest);
    if (known) return known;
    const revocations = this.#revocations;
    const found = await findApiKey(ports.db.read, Buffer.from(digest, "base64"));
    if (!found || revocations !== this.#revocations) return found;
    if (this.#found.size >= knownMax) this.#found.clear();
    this.#found.set(digest, found);
    return found;
  }

  /** Called in a revocation's transaction: who looks a key up from then on waits for its commit. */
  forget(): void {
    this.#revocations++;
    this.#found.clear();
  }
}

/** Sets `apiKey`. @throws Fault `unauthenticated`. */
export const authenticate = (ports: ApiPorts, keys: KnownKeys) =>
  createMiddleware<ApiEnv>(async (c, next) => {
    const secret = bearerOf(c.req.header("authorization"));
    const apiKey = await keys.find(ports, secret);
    if (!apiKey) throw unauthenticated("the API key is unknown or was revoked");
    c.set("apiKey", apiKey);
    await next();
  });

/** @throws Fault `denied`. */
export function checkScope(c: ApiContext, needed: Scope): void {
  const { scope } = c.get("apiKey");
  if (scopes.indexOf(scope) > scopes.indexOf(needed))
    throw new Fault("denied", `this needs the scope "${needed}", the API key has "${scope}"`, {
      code: "scope_insufficient",
      hint: `use an API key with the scope "${needed}"`,
      details: { needed, scope },
    });
}

export const requireScope = (needed: Scope) =>
  createMiddleware<ApiEnv>(async (c, next) => {
    checkScope(c, needed);
    await next();
  });

function bearerOf(header: string | undefined): string {
  const [, secret] = /^Bearer +(\S+)$/i.exec(header ?? "") ?? [];
  if (secret === undefined) throw unauthenticated("the request carries no API key");
  return secret;
}

function unauthenticated(message: string): Fault {
  return new Fault("unauthenticated", message, {
    hint: "send the header: Authorization: Bearer hf_…",
  });
}
