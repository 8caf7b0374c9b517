/**
 * Who asks, and what they may do. A secret is compared as its SHA-256, in constant time; it is never
 * logged, stored or sent back.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { createMiddleware } from "hono/factory";
import { Fault } from "../core/fault.ts";
import type { Random } from "../system/random.ts";
import type { ApiEnv, ApiPorts } from "./ports.ts";
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
  return createHash("sha256").update(secret).digest();
}

const knownMax = 1_000;

/**
 * Keys that were found before, by the hash of their secret: every request would read the same row.
 * This process is the only one that revokes; after that it has to forget.
 */
export class KnownKeys {
  readonly #found = new Map<string, ApiKeyRow>();
  #revocations = 0;

  async find(ports: ApiPorts, hash: Uint8Array): Promise<ApiKeyRow | undefined> {
    const name = Buffer.from(hash).toString("base64");
    const known = this.#found.get(name);
    if (known) return known;
    const revocations = this.#revocations;
    const found = await findApiKey(ports.db.read, hash);
    if (!found || revocations !== this.#revocations) return found;
    if (this.#found.size >= knownMax) this.#found.clear();
    this.#found.set(name, found);
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
    const apiKey = await keyOf(ports, keys, secret);
    if (!apiKey) throw unauthenticated("the API key is unknown or was revoked");
    c.set("apiKey", apiKey);
    await next();
  });

/** @throws Fault `denied`. */
export const requireScope = (needed: Scope) =>
  createMiddleware<ApiEnv>(async (c, next) => {
    const { scope } = c.get("apiKey");
    if (scopes.indexOf(scope) > scopes.indexOf(needed))
      throw new Fault("denied", `this needs the scope "${needed}", the API key has "${scope}"`, {
        code: "scope_insufficient",
        hint: `use an API key with the scope "${needed}"`,
        details: { needed, scope },
      });
    await next();
  });

function bearerOf(header: string | undefined): string {
  const [, secret] = /^Bearer +(\S+)$/i.exec(header ?? "") ?? [];
  if (secret === undefined) throw unauthenticated("the request carries no API key");
  return secret;
}

async function keyOf(
  ports: ApiPorts,
  keys: KnownKeys,
  secret: string,
): Promise<ApiKeyRow | undefined> {
  if (!secretPattern.test(secret)) return undefined;
  const hash = hashSecret(secret);
  const found = await keys.find(ports, hash);
  return found && timingSafeEqual(hash, found.secret_sha256) ? found : undefined;
}

function unauthenticated(message: string): Fault {
  return new Fault("unauthenticated", message, {
    hint: "send the header: Authorization: Bearer hf_…",
  });
}
