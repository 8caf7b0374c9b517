/** `bun run bench NAME …`: runs test/bench/NAME.ts. */
import { existsSync } from "node:fs";
import { join } from "node:path";

const [name = "main", ...argv] = process.argv.slice(2);
const path = join(import.meta.dir, "..", "test", "bench", `${name}.ts`);
if (!existsSync(path)) {
  process.stderr.write(`there is no benchmark "${name}"\n`);
  process.exit(2);
}
const child = Bun.spawn([process.execPath, path, ...argv], {
  stdio: ["inherit", "inherit", "inherit"],
});
process.exit(await child.exited);
