/** What a guest part may say, checked field by field: the guest is hostile, and so is its JSON. */
import { z } from "zod";
import { Fault } from "../core/fault.ts";
import { isId } from "../core/ids.ts";
import type { Frame } from "./frames.ts";
import type { GuestMessage } from "./guest.ts";
import { signalNames } from "./guest.ts";

const command_id = z.string().refine((text) => isId("command", text), "not a command's id");
const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const nullableCount = count.nullable();
const signalText = z
  .string()
  .max(16)
  .regex(/^[A-Z0-9]+$/);
const exit_code = z.int().min(0).max(255);

const end = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("exited"), exit_code }),
  z.object({ kind: z.literal("signal"), signal: signalText }),
  z.object({
    kind: z.literal("launch_failed"),
    reason: z.enum([
      "not_found",
      "not_executable",
      "bad_cwd",
      "bad_user",
      "too_long",
      "no_resources",
      "other",
    ]),
    detail: z.string().max(1_000),
  }),
  z.object({
    kind: z.literal("timed_out"),
    exit_code: exit_code.nullable(),
    signal: signalText.nullable(),
  }),
  z.object({
    kind: z.literal("resource_exhausted"),
    resource: z.enum(["memory", "pids", "disk"]),
    limit_bytes: nullableCount,
    peak_bytes: nullableCount,
  }),
  z.object({ kind: z.literal("unknown") }),
]);

const usage = z.object({ cpu_ms: count, memory_peak_bytes: nullableCount, oom_kills: count });

const schema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("hello"),
    protocol: count,
    guest_boot_id: z.string().regex(/^[0-9a-f-]{36}$/),
    version: z.string().max(100),
    uptime_ms: count,
  }),
  z.object({ type: z.literal("ready") }),
  z.object({ type: z.literal("started"), command_id, pid: count, at_ms: count }),
  z.object({
    type: z.literal("ended"),
    command_id,
    end,
    usage,
    at_ms: count,
    output_bytes: count,
    signalled: z.enum(signalNames).nullable(),
  }),
  z.object({
    type: z.literal("stdin_taken"),
    command_id,
    offset: count,
    closed: z.boolean(),
  }),
  z.object({
    type: z.literal("signal_done"),
    command_id,
    request_id: z.string().max(64),
    delivered: z.boolean(),
  }),
  z.object({
    type: z.literal("launch_refused"),
    command_id,
    reason: z.enum(["wrong_boot", "malformed", "powering_off"]),
  }),
  z.object({ type: z.literal("powering_off") }),
  z.object({ type: z.literal("pong"), id: count, time_ms: count }),
]);

/** Apart from the rest, because it is the one that comes thousands of times a second. */
const output = z.object({
  type: z.literal("output"),
  command_id,
  offset: count,
  stream: z.enum(["stdout", "stderr"]),
  at_ms: count,
});

const decoder = new TextDecoder("utf-8", { fatal: true });

/** @throws Fault `unavailable` for anything but a message of the protocol. */
export function parseGuestMessage({ header, payload }: Frame): GuestMessage {
  const json = parseJson(header);
  const isOutput = (json as { type?: unknown } | null)?.type === "output";
  const parsed = isOutput ? output.safeParse(json) : schema.safeParse(json);
  if (!parsed.success) throw nonsense(parsed.error.issues[0]?.message ?? "unknown type");
  if (parsed.data.type === "output") return { ...parsed.data, payload };
  return parsed.data;
}

function parseJson(header: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(header));
  } catch (error) {
    throw nonsense("not JSON", error);
  }
}

function nonsense(why: string, cause?: unknown): Fault {
  return new Fault("unavailable", `guest part: ${why}`, { code: "guest_protocol", cause });
}
