/**
 * Reading a request's body: bounded, complete, valid UTF-8 and JSON, and only text that the records
 * can hold unchanged. Nothing of it is interpreted here.
 */
import { Fault } from "../core/fault.ts";
import { MiB } from "../core/units.ts";
import type { ApiContext } from "./ports.ts";
import { HttpRefusal, unsupportedMediaType } from "./problems.ts";

export const bodyBytesMax = 1 * MiB;
const depthMax = 32;
const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** Parses a JSON body into `json`; without a body it is undefined. */
export async function readJson(c: ApiContext): Promise<void> {
  const bytes = await readBounded(c.req.raw, bodyBytesMax);
  const text = textOf(bytes);
  // The framework's validators read the body from here; an empty one asks for nothing special.
  const type = c.req.header("content-type");
  if (bytes.length === 0) {
    const taken = type === undefined ? "" : "{}";
    Object.assign(c.req.bodyCache, { text: Promise.resolve(taken) });
  } else {
    if (!jsonType.test(type ?? "")) throw unsupportedMediaType();
    const json = parseJson(text);
    c.set("json", json);
    Object.assign(c.req.bodyCache, { text: Promise.resolve(text), json: Promise.resolve(json) });
  }
}

/** @throws Fault `malformed`, also with the status 413. */
export async function readBounded(request: Request, bytesMax: number): Promise<Uint8Array> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > bytesMax) throw tooLarge(bytesMax);
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    // A length that was declared is all that HTTP delivers.
    if (declared > 0) return await request.bytes();
    for await (const part of request.body ?? []) {
      length += part.length;
      if (length > bytesMax) throw tooLarge(bytesMax);
      parts.push(part);
    }
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault("malformed", "the body ended before it was complete", { cause: error });
  }
  return joined(parts, length);
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function tooLarge(bytesMax: number): Fault {
  const fault = new Fault("malformed", `the body is over ${bytesMax} bytes`, {
    code: "body_too_large",
    hint: "send large data on a command's stdin, in pieces",
  });
  return new HttpRefusal(413, fault);
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Fault("malformed", "the body is not UTF-8", { code: "malformed_json" });
  }
}

function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    throw new Fault("malformed", "the body is not JSON", { code: "malformed_json" });
  }
  refuseUnstorable(value, "", 0);
  return value;
}

/** Text with NUL or half of a surrogate pair would come back changed from a database or a guest. */
function refuseUnstorable(value: unknown, pointer: string, depth: number): void {
  if (depth > depthMax) throw unstorable(pointer.slice(0, 100), "is nested too deep");
  if (typeof value === "string") refuseText(value, pointer);
  if (typeof value !== "object" || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    const childPointer = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    refuseText(key, pointer);
    if (key === "__proto__") throw unstorable(childPointer, "is a name that is not taken");
    refuseUnstorable(child, childPointer, depth + 1);
  }
}

function refuseText(text: string, pointer: string): void {
  if (!text.isWellFormed()) throw unstorable(pointer, "has half of a surrogate pair");
  if (text.includes("\0")) throw unstorable(pointer, "has a NUL character");
}

function unstorable(pointer: string, detail: string): Fault {
  return new Fault("invalid", `${pointer || "the body"} ${detail}`, {
    code: "invalid_request",
    details: { errors: [{ pointer, detail }] },
  });
}
