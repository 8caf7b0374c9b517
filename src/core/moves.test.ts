import { expect, test } from "bun:test";
import { commandMoves, isFinal } from "../commands/command.ts";
import { busyPhases, phasesWithVm, sandboxMoves } from "../sandboxes/sandbox.ts";
import { accepts, type Moves, move, statesOf } from "./moves.ts";

const tables: [string, Moves, string][] = [
  ["sandbox", sandboxMoves, "stopped"],
  ["command", commandMoves, "queued"],
];

/** States from which `from` cannot be told apart by where they lead. */
function reachedFrom(moves: Moves, from: string): Set<string> {
  const reached = new Set([from]);
  for (const state of reached) for (const to of Object.values(moves[state] ?? {})) reached.add(to);
  return reached;
}

for (const [noun, moves, first] of tables) {
  test(`every state of a ${noun} can be reached, and every move leads to a state`, () => {
    expect([...reachedFrom(moves, first)].sort()).toEqual(statesOf(moves).sort());
  });

  test(`a ${noun} can always come to an end`, () => {
    for (const state of statesOf(moves)) {
      const ends = [...reachedFrom(moves, state)].filter(
        (each) => Object.keys(moves[each] ?? {}).length === 0,
      );
      expect(ends.length).toBeGreaterThan(0);
    }
  });
}

test("a command that has ended accepts nothing, and one that has not accepts something", () => {
  for (const state of statesOf(commandMoves))
    expect(Object.keys(commandMoves[state]).length === 0).toBe(isFinal(state));
});

test("nothing leads a command back to where it could be sent again", () => {
  for (const state of statesOf(commandMoves)) {
    if (state === "queued") continue;
    expect([...reachedFrom(commandMoves, state)]).not.toContain("queued");
  }
});

test("a sandbox can be deleted in every phase but once it is being deleted", () => {
  for (const phase of statesOf(sandboxMoves)) {
    const gone = phase === "deleting" || phase === "deleted";
    expect(accepts(sandboxMoves, phase, "delete")).toBe(!gone);
  }
});

test("phases that are busy or hold a VM are phases", () => {
  const phases = statesOf(sandboxMoves);
  for (const phase of [...busyPhases, ...phasesWithVm]) expect(phases).toContain(phase);
});

test("a move that is not in the table is a bug, and a refusal for people", () => {
  expect(accepts(sandboxMoves, "deleted", "start")).toBe(false);
  expect(() => move(sandboxMoves, "deleted", "start")).toThrow('"deleted" does not accept "start"');
  expect(accepts({ one: {} }, "one", "toString" as never)).toBe(false);
});
