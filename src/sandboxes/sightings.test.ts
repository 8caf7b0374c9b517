import { expect, test } from "bun:test";
import { VirtualClock } from "../../test/simulation/clock.ts";
import { Sightings } from "./sightings.ts";

const ref = { sandbox: "sb", run: 1 };

async function pass(clock: VirtualClock, ms: number): Promise<void> {
  void clock.sleep(ms);
  await clock.advance();
}

test("silence counts from the last word, and where there was none from the first question", async () => {
  const clock = new VirtualClock();
  const sightings = new Sightings(clock);
  await pass(clock, 60_000);
  expect(sightings.silentForMs(ref)).toBe(0);
  await pass(clock, 500);
  expect(sightings.silentForMs(ref)).toBe(500);
  sightings.heard(ref);
  expect(sightings.silentForMs(ref)).toBe(0);
});

test("nothing is claimed about a guest that was not heard, nor about another run of it", () => {
  const clock = new VirtualClock();
  const sightings = new Sightings(clock);
  expect(sightings.lastHeardMs(ref)).toBeUndefined();
  sightings.heard(ref);
  expect(sightings.lastHeardMs(ref)).toBe(clock.now());
  expect(sightings.lastHeardMs({ ...ref, run: 2 })).toBeUndefined();
  sightings.forget(ref);
  expect(sightings.lastHeardMs(ref)).toBeUndefined();
});

test("whether somebody listens is told per run", () => {
  const sightings = new Sightings(new VirtualClock());
  sightings.setListening(ref, true);
  expect(sightings.isListening(ref)).toBe(true);
  expect(sightings.isListening({ ...ref, run: 2 })).toBe(false);
  sightings.setListening(ref, false);
  expect(sightings.isListening(ref)).toBe(false);
});
