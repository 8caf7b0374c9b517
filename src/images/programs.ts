/** Where the programs are that go onto the tools disk. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import runner from "../../dist/holdfast-run" with { type: "file" };
import { Fault } from "../core/fault.ts";
import type { GuestPrograms } from "./boot.ts";

/** In the binary: itself, and the runner built into it. From source: what the build left in dist. */
export function guestPrograms(): GuestPrograms {
  if (import.meta.path.startsWith("/$bunfs/"))
    return { holdfastPath: process.execPath, runnerPath: runner };
  const dist = join(import.meta.dir, "..", "..", "dist");
  const programs = { holdfastPath: join(dist, "holdfast"), runnerPath: join(dist, "holdfast-run") };
  if (Object.values(programs).every((path) => existsSync(path))) return programs;
  throw new Fault("unavailable", "the guest's programs are not built", {
    hint: "bun scripts/build.ts",
  });
}
