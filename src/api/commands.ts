/** Commands over HTTP: send, look, wait, end, and feed their stdin. */
import { acceptCommand } from "../commands/accept.ts";
import { isFinal, stdinPieceBytesMax } from "../commands/command.ts";
import { requestKill } from "../commands/kill.ts";
import { extentOf } from "../commands/output.ts";
import { acceptStdin } from "../commands/stdin.ts";
import { getCommand, listCommands } from "../commands/store.ts";
import { getBusy, getSandbox } from "../sandboxes/store.ts";
import { topics } from "../system/signals.ts";
import { readBounded } from "./body.ts";
import * as routes from "./command-routes.ts";
import { noOutput, viewCommand } from "./command-view.ts";
import { change } from "./idempotency.ts";
import { readRows } from "./paging.ts";
import type { ApiPorts } from "./ports.ts";
import { makeApp } from "./routes.ts";
import { lookUntil } from "./waiting.ts";

export const commandRoutes = (ports: ApiPorts) =>
  makeApp()
    .openapi(routes.postCommand, async (c) => {
      const { argv, command, timeout_seconds, ...rest } = c.req.valid("json");
      const timeoutMs = timeout_seconds === null ? null : Math.ceil(timeout_seconds * 1000);
      const wanted = { ...rest, timeoutMs, argv: argv ?? ["/bin/bash", "-lc", command ?? ""] };
      const answer = await change(c, ports, {
        work: async (tx) => {
          const sandbox = await getBusy(tx, c.req.valid("param").id);
          const by = c.get("apiKey").id;
          const row = await acceptCommand(tx, ports, { ...wanted, sandbox, by });
          const body = viewCommand(row, noOutput);
          return { status: 201 as const, body, commandId: row.id };
        },
      });
      c.header("Location", `/v1/commands/${answer.body.id}`);
      return c.json(answer.body, answer.status);
    })
    .openapi(routes.getCommands, async (c) => {
      const { id: sandboxId } = await getSandbox(ports.db.read, c.req.valid("param").id);
      const { state, limit, cursor } = c.req.valid("query");
      const purpose = JSON.stringify(["commands", sandboxId, state ?? []]);
      const list = (from: { before: string | undefined; limit: number }) =>
        listCommands(ports.db.read, { sandboxId, states: state, ...from });
      const { rows, next_cursor } = await readRows(ports, { purpose, cursor, limit, list });
      const data = rows.map(async (row) => viewCommand(row, await extentOfRow(ports, row)));
      return c.json({ data: await Promise.all(data), next_cursor }, 200);
    })
    .openapi(routes.getOne, async (c) => {
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
    .openapi(routes.postKill, async (c) => {
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
    .openapi(routes.postStdin, async (c) => {
      const { offset, eof } = c.req.valid("query");
      const data = await readBounded(c.req.raw, stdinPieceBytesMax);
      const accepted = await ports.db.write(async (tx) => {
        const command = await getCommand(tx, c.req.valid("param").id);
        return acceptStdin(tx, { command, offset, data, eof: eof === "true" });
      });
      return c.json({ offset: accepted }, 200);
    });

const extentOfRow = (ports: ApiPorts, { id }: { id: string }) => extentOf(ports.output.read, id);
