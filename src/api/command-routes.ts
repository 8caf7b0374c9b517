/** The routes about commands: what each takes and answers. What they do is in commands.ts. */
import { z } from "@hono/zod-openapi";
import {
  argumentsMax,
  environmentEntriesMax,
  pathBytesMax,
  stdinPieceBytesMax,
  timeoutSecondsMax,
} from "../commands/command.ts";
import { signalNames } from "../guest/guest.ts";
import { commandSchema, states } from "./command-view.ts";
import { changing, reading, sequenced } from "./routes.ts";
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

export const postCommand = changing({
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

export const getCommands = reading({
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

export const getOne = reading({
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

export const postKill = changing({
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

export const postStdin = sequenced({
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
