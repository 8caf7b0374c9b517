/**
 * Reading a command's output from a cursor on, in pages of bounded size. What is missing is always
 * told as a gap, in its place.
 */
import { z } from "@hono/zod-openapi";
import { type CommandRow, isFinal } from "../commands/command.ts";
import { type OutputPart, readOutput } from "../commands/output.ts";
import { getCommand } from "../commands/store.ts";
import { openCursor, sealCursor } from "./cursors.ts";
import type { ApiPorts } from "./ports.ts";
import { timeOf, timeSchema } from "./schemas.ts";

export type StreamChoice = "all" | "stdout" | "stderr";

export const gapSchema = z.object({
  from: z.int(),
  to: z.int(),
  bytes: z.int(),
  reason: z.enum(["over_cap"]),
});

export const partSchema = z.union([
  z.object({ stream: z.enum(["stdout", "stderr"]), at: timeSchema, text: z.string() }),
  z.object({ stream: z.enum(["stdout", "stderr"]), at: timeSchema, data_base64: z.string() }),
  z.object({ gap: gapSchema }),
]);
export type PartView = z.infer<typeof partSchema>;

export interface Reading {
  commandId: string;
  offset: number;
  bytesMax: number;
  stream: StreamChoice;
}

export interface Page {
  command: CommandRow;
  parts: OutputPart[];
  end: number;
  more: boolean;
  /** Nothing more will ever come behind `end`. */
  complete: boolean;
}

/** The command is looked at first: an end on record has all its output stored. */
export async function readPage(ports: ApiPorts, wanted: Reading): Promise<Page> {
  const { commandId, offset, bytesMax, stream } = wanted;
  const command = await getCommand(ports.db.read, commandId);
  const page = await readOutput(ports.output.read, commandId, { offset, bytesMax });
  const parts = page.parts.filter(
    (part) => stream === "all" || part.kind === "gap" || part.stream === stream,
  );
  const complete = isFinal(command.state) && !page.more;
  return { command, parts, end: page.end, more: page.more, complete };
}

/** Text where the bytes are UTF-8, so that most output can be read as it is; base64 otherwise. */
export function viewPart(part: OutputPart): PartView {
  if (part.kind === "gap") return { gap: viewGap(part) };
  const { stream } = part;
  const at = timeOf(part.atMs);
  const text = textOf(part.data);
  if (text !== undefined) return { stream, at, text };
  return { stream, at, data_base64: Buffer.from(part.data).toString("base64") };
}

export const viewGap = ({ from, to }: { from: number; to: number }) => ({
  from,
  to,
  bytes: to - from,
  reason: "over_cap" as const,
});

function textOf(data: Uint8Array): string | undefined {
  // A failed decode is the answer to the question here, not a fault.
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(data);
  if (!text.includes("\uFFFD")) return text;
  return Buffer.from(text).equals(data) ? text : undefined;
}

const purposeOf = (commandId: string): string => `output:${commandId}`;

export function outputCursor(ports: ApiPorts, commandId: string, offset: number): string {
  return sealCursor(ports.host, purposeOf(commandId), String(offset));
}

/** @throws Fault `malformed` not a cursor of this command's output. */
export function offsetOf(ports: ApiPorts, commandId: string, cursor: string | undefined): number {
  return Number(openCursor(ports.host, purposeOf(commandId), cursor) ?? 0);
}
