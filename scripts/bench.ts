/** `bun run bench NAME …`: runs test/bench/NAME.ts, after building the binary and what VMs boot. */
import { existsSync } from "node:fs";
import { join } from "node:path";

const [name = "main", ...argv] = process.argv.slice(2);
const path = join(import.meta.dir, "..", "test", "bench", `${name}.ts`);
if (!existsSync(path)) {
  process.stderr.write(`there is no benchmark "${name}"\n`);
  process.exit(2);
}
const images = Bun.spawnSync([process.execPath, join(import.meta.dir, "test-images.ts")], {
  // What a benchmark prints on stdout is its table and nothing else.
  stdio: ["ignore", 2, "inherit"],
});
if (images.exitCode !== 0) process.exit(1);
const child = Bun.spawn([process.execPath, path, ...argv], {
  stdio: ["inherit", "inherit", "inherit"],
});
process.exit(await child.exited);
