import { expect, test } from "bun:test";
import { VirtualClock } from "../../test/simulation/clock.ts";
import { Signals } from "./signals.ts";

async function isOver(promise: Promise<void>): Promise<boolean> {
  let over = false;
  void promise.then(() => {
    over = true;
  });
  await new Promise((turn) => setImmediate(turn));
  return over;
}

test("a signal wakes all who wait for its topic, and nobody else", async () => {
  const signals = new Signals(new VirtualClock());
  const [one, two] = [signals.wait("a", 1_000), signals.wait("a", 1_000)];
  const other = signals.wait("b", 1_000);
  signals.notify(["a"]);
  expect(await Promise.all([one, two, other].map(isOver))).toEqual([true, true, false]);
});

test("one wait on several topics ends at the first, and leaves nothing behind", async () => {
  const signals = new Signals(new VirtualClock());
  const waiting = signals.wait(["a", "b", "c"], 1_000);
  signals.notify(["b"]);
  expect(await isOver(waiting)).toBe(true);
  expect(signals.size).toBe(0);
});

test("a wait ends when its time has passed, and leaves nothing behind", async () => {
  const clock = new VirtualClock();
  const signals = new Signals(clock);
  const waiting = signals.wait("a", 1_000);
  await clock.advance();
  expect(await isOver(waiting)).toBe(true);
  expect(signals.size).toBe(0);
});

test("a signal that comes before the wait is not remembered", async () => {
  const signals = new Signals(new VirtualClock());
  signals.notify(["a"]);
  expect(await isOver(signals.wait("a", 1_000))).toBe(false);
});
