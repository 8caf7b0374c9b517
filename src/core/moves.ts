/**
 * States as tables: for each state, the events it accepts and where each one leads. Types, the SQL
 * check and the property tests come from the table, so no state can exist beside it.
 */
import { assert } from "./assert.ts";

/** `{}` marks an end: nothing leads out of it. */
export type Moves = Readonly<Record<string, Readonly<Record<string, string>>>>;
export type StateOf<M extends Moves> = keyof M & string;
export type EventOf<M extends Moves> = { [S in keyof M]: keyof M[S] }[keyof M] & string;

/** Whether a person may ask for this now. A refusal is a `conflict` fault, not a bug. */
export function accepts<M extends Moves>(moves: M, from: StateOf<M>, event: EventOf<M>): boolean {
  return Object.hasOwn(moves[from] ?? {}, event);
}

/**
 * Where our own code goes next.
 * @throws Bug when the table has no such move.
 */
export function move<M extends Moves>(moves: M, from: StateOf<M>, event: EventOf<M>): StateOf<M> {
  const to: string | undefined = moves[from]?.[event];
  assert(to !== undefined, `"${from}" does not accept "${event}"`);
  return to as StateOf<M>;
}

/** Every state, in the table's order; the SQL check and the API's enum are made from it. */
export function statesOf<M extends Moves>(moves: M): [StateOf<M>, ...StateOf<M>[]] {
  return Object.keys(moves) as [StateOf<M>, ...StateOf<M>[]];
}
