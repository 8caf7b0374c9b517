/** Randomness, as the appliance sees it. The simulator supplies a seeded one. */
export interface Random {
  /** Unpredictable bytes, fit for secrets. */
  bytes(count: number): Uint8Array;
}

export const systemRandom: Random = {
  bytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
};
