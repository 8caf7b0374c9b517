/**
 * A mistake in our own code. Nothing catches it: the process ends, its supervisor starts it again,
 * and workflows go on from their last committed step.
 */
export class Bug extends Error {
  override name = "Bug";
}

/** @throws Bug with the claim when it does not hold. */
export function assert(truth: unknown, claim: string): asserts truth {
  if (!truth) throw new Bug(claim);
}
