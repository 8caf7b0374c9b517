/** `holdfast api`: one request to the API, with the API key and an idempotency key added. */
import { readFileSync } from "node:fs";
import { newKey } from "./client.ts";
import { clientCommand, wordsOf } from "./command.ts";

const usage = `usage: holdfast api METHOD PATH [-d JSON|@FILE|@-] [-H NAME:VALUE]…

  holdfast api GET /v1/sandboxes
  holdfast api POST /v1/sandboxes -d '{"name":"web"}'
exit codes: 0 · 1 refused · 2 usage · 4 API key`;

export const api = clientCommand({
  usage,
  flags: { body: { kind: "text", short: "d" }, header: { kind: "list", short: "H" } },
  run: async ({ client, flags, words }) => {
    const [method = "", path = ""] = wordsOf(words, "METHOD", "PATH");
    const body = flags.body?.startsWith("@") ? readAll(flags.body.slice(1)) : flags.body;
    const changes = method.toUpperCase() !== "GET" && method.toUpperCase() !== "HEAD";
    const headers = new Headers(changes ? newKey() : {});
    if (body !== undefined) headers.set("content-type", "application/json");
    for (const header of flags.header) {
      const [name = "", value = ""] = header.split(/:\s*(.*)/s, 2);
      headers.set(name, value);
    }
    const init = { method: method.toUpperCase(), headers, ...(body !== undefined && { body }) };
    const answer = await client.request(path, init);
    for await (const part of answer.body ?? []) process.stdout.write(part);
    if (process.stdout.isTTY) process.stdout.write("\n");
    return 0;
  },
});

const readAll = (path: string): string => readFileSync(path === "-" ? 0 : path, "utf8");
