/** What goes wrong, and how often. */
import type { SeededRandom } from "./random.ts";

export interface Weather {
  /** Chance that a VM, once started, never answers. */
  stillborn: number;
  /** Chance that a VM's guest part lies. */
  hostile: number;
  /** Longest a call may take. */
  slowestMs: number;
  errors: number;
  lostReplies: number;
  crashes: number;
  /** Chance, per message, that the channel breaks there. */
  cuts: number;
  /** Longest a commit may take. */
  commitMs: number;
  /** Chance, per commit, that the disk does not take it. */
  commitErrors: number;
}

export const calm: Weather = {
  stillborn: 0,
  hostile: 0,
  slowestMs: 50,
  errors: 0,
  lostReplies: 0,
  crashes: 0,
  cuts: 0,
  commitMs: 0,
  commitErrors: 0,
};

/** Each seed draws its own: a mild average storm explores far less than many uneven ones. */
export function storm(random: SeededRandom): Weather {
  const upTo = (most: number): number => (random.chance(0.3) ? 0 : random.fraction() * most);
  return {
    stillborn: upTo(0.3),
    hostile: random.chance(0.7) ? 0 : random.fraction() * 0.5,
    slowestMs: random.between(1, random.chance(0.3) ? 20_000 : 500),
    errors: upTo(0.3),
    lostReplies: upTo(0.2),
    crashes: upTo(0.15),
    cuts: upTo(0.1),
    commitMs: random.between(0, random.chance(0.5) ? 0 : 200),
    commitErrors: random.chance(0.6) ? 0 : random.fraction() * 0.05,
  };
}

export const mishaps = ["error", "lostReply", "crashBefore", "crashAfter", "hostLost"] as const;
export type Mishap = (typeof mishaps)[number];

/** A call to the outside, a message of either direction, a commit. */
export type Occasion = "call" | "message" | "commit";

/** Commits and messages come so often that a crash at each would leave nothing but crashes. */
const rarer = { call: 1, message: 0.1, commit: 0.05 } as const;

export function drawMishap(
  random: SeededRandom,
  weather: Weather,
  occasion: Occasion,
): Mishap | undefined {
  const { errors, lostReplies, cuts, commitErrors } = weather;
  const failing = { call: errors, message: cuts, commit: commitErrors };
  if (random.chance(failing[occasion])) return occasion === "message" ? either(random) : "error";
  if (random.chance(weather.crashes * rarer[occasion]))
    return random.chance(0.5) ? "crashBefore" : "crashAfter";
  if (occasion === "call" && random.chance(lostReplies)) return "lostReply";
  return undefined;
}

const either = (random: SeededRandom): Mishap => (random.chance(0.5) ? "error" : "lostReply");
