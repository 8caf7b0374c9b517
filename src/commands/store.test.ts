import { expect, test } from "bun:test";
import { ask, testHost } from "../../test/api/host.ts";
import { getCommand, insertCommand } from "./store.ts";

test("what is returned of a new command is what a later look reads", async () => {
  const { app, key, ports } = await testHost();
  const secret = await key("admin");
  const made = await ask(app, "POST /v1/sandboxes", {
    secret,
    idempotencyKey: "a",
    body: { name: "box", size: "tiny" },
  });
  const row = await ports.db.write((tx) =>
    insertCommand(tx, {
      id: `cmd_${"0".repeat(26)}`,
      sandbox_id: made.body.id,
      argv: "[]",
      cwd: null,
      env: "{}",
      user: "agent",
      timeout_ms: null,
      stdin: 0,
      accepted_by: "key",
      accepted_at_ms: 1,
    }),
  );
  expect(await getCommand(ports.db.read, row.id)).toEqual(row);
});
