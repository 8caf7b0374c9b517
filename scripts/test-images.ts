/** Builds what the machine tests boot, in .cache/machine: the binary, the base, the boot files. */
import { join } from "node:path";
import { type Builder, bringBase, bringBoot, recipeOf } from "../src/images/build.ts";
import { guestPrograms } from "../src/images/programs.ts";
import { testImages } from "../test/machine/images.ts";

const build = Bun.spawnSync([process.execPath, join(import.meta.dir, "build.ts")], {
  stdio: ["ignore", "inherit", "inherit"],
});
if (build.exitCode !== 0) process.exit(1);
const builder: Builder = { store: testImages(), say: (line) => console.log(line) };
const base = await bringBase(builder, recipeOf("slim"));
const boot = await bringBoot(builder, guestPrograms());
console.log(`base ${base.manifest.digest}, boot files ${boot.manifest.digest}`);
