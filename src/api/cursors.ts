/**
 * Opaque cursors: where to go on reading, signed for one purpose with the host's secret. One that
 * was changed, made up or meant for something else is refused, never guessed at.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { Fault } from "../core/fault.ts";
import type { Host } from "../hosts/host.ts";

const tagBytes = 12;

/** @param purpose what the cursor is for: the list with its filters, or the command's output. */
export function sealCursor(host: Host, purpose: string, position: string): string {
  const text = Buffer.from(position);
  return Buffer.concat([tagOf(host, purpose, text), text]).toString("base64url");
}

/** The position; undefined without a cursor. @throws Fault `malformed` it was not made for this. */
export function openCursor(
  host: Host,
  purpose: string,
  cursor: string | undefined,
): string | undefined {
  if (cursor === undefined) return undefined;
  const bytes = Buffer.from(cursor, "base64url");
  const [tag, text] = [bytes.subarray(0, tagBytes), bytes.subarray(tagBytes)];
  const ours = bytes.toString("base64url") === cursor && tag.length === tagBytes;
  if (ours && timingSafeEqual(tag, tagOf(host, purpose, text))) return text.toString();
  throw new Fault("malformed", "the cursor was not made for this request", {
    code: "invalid_cursor",
    hint: "use a cursor as it was handed out, with the same filters, or begin without one",
  });
}

function tagOf(host: Host, purpose: string, text: Uint8Array): Buffer {
  const mac = createHmac("sha256", host.secret).update(`${purpose.length}:${purpose}`);
  return mac.update(text).digest().subarray(0, tagBytes);
}
