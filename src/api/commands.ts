/** Commands over HTTP: send, look, wait, end, and feed their stdin. */
import { z } from "@hono/zod-openapi";
import { acceptCommand } from "../commands/accept.ts";
import {
  argumentsMax,
  environmentEntriesMax,
  isFinal,
  pathBytesMax,
  stdinPieceBytesMax,
  timeoutSecondsMax,
} from "../commands/command.ts";
import { requestKill } from "../commands/kill.ts";
import { extentOf } from "../commands/output.ts";
import { acceptStdin } from "../commands/stdin.ts";
import { getCommand, listCommands } from "../commands/store.ts";
import { signalNames } from "../guest/guest.ts";
import { getSandbox } from "../sandboxes/store.ts";
import { topics } from "../system/signals.ts";
import { readBounded } from "./body.ts";
import { commandSchema, noOutput, states, viewCommand } from "./command-view.ts";
import { openCursor, sealCursor } from "./cursors.ts";
import { change } from "./idempotency.ts";
import type { ApiPorts } from "./ports.ts";
import { changing, makeApp, reading, sequenced } from "./routes.ts";
import {
  cursorQuery,
  idempotencyHeader,
  idParam,
  json,
  limitQuery,
  pageOf,
  queryInteger,
  queryWords,
  strict,
  waitQuery,
} from "./schemas.ts";
import { lookUntil } from "./waiting.ts";

/** The user every base has for work. */
const defaultUser = "agent";
const userPattern = /^[a-z_][a-z0-9_.-]{0,31}$/;
const environmentName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, "must be a name of A-Z a-z 0-9 _, not a digit first");

const wantedSchema = strict({
  argv: z
    .array(z.string())
    .min(1)
    .max(argumentsMax)
    .refine(([program]) => program !== "", "the program's name is empty")
    .optional()
    .openapi({ description: "The program and its arguments, run as they are." }),
  command: z
    .string()
    .min(1)
    .optional()
    .openapi({ description: "A shell line, run as /bin/bash -lc LINE. Either this or argv." }),
  cwd: z
    .string()
    .startsWith("/", "must be an absolute path")
    .max(pathBytesMax)
    .nullable()
    .default(null)
    .openapi({ description: "Without it, the user's home directory." }),
  env: z
    .record(environmentName, z.string())
    .refine(
      (env) => Object.keys(env).length <= environmentEntriesMax,
      `at most ${environmentEntriesMax} entries`,
    )
    .default({}),
  user: z.string().regex(userPattern, "must be a user's name").default(defaultUser),
  timeout_seconds: z
    .number()
    .min(0.001)
    .max(timeoutSecondsMax)
    .nullable()
    .default(null)
    .openapi({ description: "Its processes are ended once this has passed." }),
  stdin: z
    .boolean()
    .default(false)
    .openapi({ description: "Whether stdin stays open for POST …/stdin; else it is /dev/null." }),
}).refine(({ argv, command }) => (argv === undefined) !== (command === undefined), {
  path: ["argv"],
  message: "give exactly one of `argv` and `command`",
});

const signalSchema = z
  .string()
  .transform((name) => name.replace(/^SIG/, ""))
  .pipe(z.enum(signalNames, { error: `must be of: ${signalNames.join(", ")}` }))
  .default("TERM")
  .openapi({ type: "string", description: `One of: ${signalNames.join(", ")}` });

const postCommand = changing({
  method: "post",
  path: "/v1/sandboxes/{id}/commands",
  operationId: "sendCommand",
  summary: "Send a command; starts the sandbox where it is not running",
  description:
    "Durable before the answer; never run twice. A queued command waits for its sandbox.",
  request: {
    params: idParam,
    headers: idempotencyHeader,
    body: { ...json(wantedSchema, "What to run"), required: true },
  },
  responses: { 201: json(commandSchema, "Accepted") },
});

const getCommands = reading({
  method: "get",
  path: "/v1/sandboxes/{id}/commands",
  operationId: "listCommands",
  summary: "List a sandbox's commands, newest first",
  request: {
    params: idParam,
    query: strict({
      state: queryWords(states, "Only commands in these states"),
      limit: limitQuery,
      cursor: cursorQuery,
    }),
  },
  responses: { 200: json(pageOf(commandSchema), "One page") },
});

const getOne = reading({
  method: "get",
  path: "/v1/commands/{id}",
  operationId: "getCommand",
  summary: "Get a command, or wait for its end",
  request: {
    params: idParam,
    query: strict({
      wait: waitQuery,
      wait_for: queryWords(states, "Wait for a state instead of the end"),
    }),
  },
  responses: { 200: json(commandSchema, "As it stands") },
});

const postKill = changing({
  method: "post",
  path: "/v1/commands/{id}/kill",
  operationId: "killCommand",
  summary: "Send a command a signal",
  description: "To its process group; KILL to all it left behind. One not sent yet never runs.",
  request: {
    params: idParam,
    headers: idempotencyHeader,
    body: json(strict({ signal: signalSchema }), "Which signal"),
  },
  responses: { 202: json(commandSchema, "Recorded, and sent until the guest answers") },
});

const postStdin = sequenced({
  method: "post",
  path: "/v1/commands/{id}/stdin",
  operationId: "writeStdin",
  summary: "Write a piece of a command's stdin",
  description:
    "The raw body goes to stdin at `offset`, the bytes before it; needs no idempotency key, " +
    "because what came before is not written twice.",
  request: {
    params: idParam,
    query: strict({
      offset: queryInteger({
        min: 0,
        max: Number.MAX_SAFE_INTEGER,
        description: "Bytes of stdin before this piece.",
      }),
      eof: z.enum(["true", "false"]).default("false").openapi({ description: "Closes stdin." }),
    }),
    body: {
      content: { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } },
      description: `At most ${stdinPieceBytesMax} bytes`,
    },
  },
  responses: {
    200: json(z.object({ offset: z.int() }), "Bytes of stdin accepted in all"),
  },
});

export const commandRoutes = (ports: ApiPorts) =>
  makeApp()
    .openapi(postCommand, async (c) => {
      const { argv, command, timeout_seconds, ...rest } = c.req.valid("json");
      const timeoutMs = timeout_seconds === null ? null : Math.ceil(timeout_seconds * 1000);
      const wanted = { ...rest, timeoutMs, argv: argv ?? ["/bin/bash", "-lc", command ?? ""] };
      const answer = await change(c, ports, {
        work: async (tx) => {
          const sandbox = await getSandbox(tx, c.req.valid("param").id);
          const by = c.get("apiKey").id;
          const row = await acceptCommand(tx, ports, { ...wanted, sandbox, by });
          const body = viewCommand(row, noOutput);
          return { status: 201 as const, body, commandId: row.id };
        },
      });
      c.header("Location", `/v1/commands/${answer.body.id}`);
      return c.json(answer.body, answer.status);
    })
    .openapi(getCommands, async (c) => {
      const { id: sandboxId } = await getSandbox(ports.db.read, c.req.valid("param").id);
      const { state, limit, cursor } = c.req.valid("query");
      const purpose = JSON.stringify(["commands", sandboxId, state ?? []]);
      const before = openCursor(ports.host, purpose, cursor);
      const wanted = { sandboxId, states: state, before, limit: limit + 1 };
      const rows = await listCommands(ports.db.read, wanted);
      const page = rows.slice(0, limit);
      const last = rows.length > limit ? page.at(-1) : undefined;
      const next_cursor = last ? sealCursor(ports.host, purpose, last.id) : null;
      const data = page.map(async (row) => viewCommand(row, await extentOfRow(ports, row)));
      return c.json({ data: await Promise.all(data), next_cursor }, 200);
    })
    .openapi(getOne, async (c) => {
      const { id } = c.req.valid("param");
      const { wait, wait_for } = c.req.valid("query");
      const row = await lookUntil(ports, {
        topic: topics.command(id),
        waitSeconds: wait,
        look: () => getCommand(ports.db.read, id),
        isThere: ({ state }) => isFinal(state) || (wait_for?.includes(state) ?? false),
      });
      return c.json(viewCommand(row, await extentOfRow(ports, row)), 200);
    })
    .openapi(postKill, async (c) => {
      const { id } = c.req.valid("param");
      const { signal = "TERM" } = c.req.valid("json");
      const answer = await change(c, ports, {
        prepare: () => extentOfRow(ports, { id }),
        work: async (tx, extent) => {
          const command = await getCommand(tx, id);
          await requestKill(tx, ports, { command, signal, by: c.get("apiKey").id });
          return { status: 202 as const, body: viewCommand(await getCommand(tx, id), extent) };
        },
      });
      return c.json(answer.body, answer.status);
    })
    .openapi(postStdin, async (c) => {
      const { offset, eof } = c.req.valid("query");
      const data = await readBounded(c.req.raw, stdinPieceBytesMax);
      const accepted = await ports.db.write(async (tx) => {
        const command = await getCommand(tx, c.req.valid("param").id);
        return acceptStdin(tx, { command, offset, data, eof: eof === "true" });
      });
      return c.json({ offset: accepted }, 200);
    });

const extentOfRow = (ports: ApiPorts, { id }: { id: string }) => extentOf(ports.output.read, id);
