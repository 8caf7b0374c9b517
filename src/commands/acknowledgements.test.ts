import { expect, test } from "bun:test";
import fc from "fast-check";
import type { HostMessage } from "../guest/guest.ts";
import { Acknowledgements } from "./acknowledgements.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a guest that reads nothing makes nothing pile up", async () => {
  const said: HostMessage[] = [];
  let goOn = (): void => {};
  const acknowledgements = new Acknowledgements((message) => {
    said.push(message);
    return new Promise((resolve) => {
      goOn = resolve;
    });
  });
  for (let offset = 1; offset <= 1_000; offset++) void acknowledgements.say("cmd_1", offset);
  await turn();
  expect(said.length).toBe(1);
  goOn();
  await turn();
  goOn();
  await turn();
  expect(said.slice(1)).toEqual([{ type: "ack", command_id: "cmd_1", offset: 1_000 }]);
});

test("the newest offset of every command is said in the end, and none goes back", async () => {
  const say = fc.record({
    id: fc.constantFrom("cmd_1", "cmd_2", "cmd_3"),
    offset: fc.nat(100),
    waits: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(say), async (says) => {
      const last = new Map<string, number>();
      const acknowledgements = new Acknowledgements(async (message) => {
        if (message.type !== "ack") return;
        await turn();
        last.set(message.command_id, Math.max(message.offset, last.get(message.command_id) ?? 0));
      });
      const newest = new Map<string, number>();
      for (const { id, offset, waits } of says) {
        newest.set(id, Math.max(offset, newest.get(id) ?? 0));
        const saying = acknowledgements.say(id, offset);
        if (waits) await saying;
      }
      for (let left = 0; left < says.length + 1; left++) await turn();
      expect(last).toEqual(newest);
    }),
    { numRuns: 50 },
  );
});
