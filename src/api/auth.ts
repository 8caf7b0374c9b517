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

/** Sets `apiKey`. @throws Fault `unauthenticated`. */
export const authenticate = (ports: ApiPorts) =>
  createMiddleware<ApiEnv>(async (c, next) => {
    const secret = bearerOf(c.req.header("authorization"));
    const apiKey = await keyOf(ports, secret);
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

async function keyOf(ports: ApiPorts, secret: string): Promise<ApiKeyRow | undefined> {
  if (!secretPattern.test(secret)) return undefined;
  const hash = hashSecret(secret);
  const found = await findApiKey(ports.db.read, hash);
  return found && timingSafeEqual(hash, found.secret_sha256) ? found : undefined;
}

function unauthenticated(message: string): Fault {
  return new Fault("unauthenticated", message, {
    hint: "send the header: Authorization: Bearer hf_…",
  });
}
