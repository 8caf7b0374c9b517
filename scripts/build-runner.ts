/** Builds the static runner of the guest part with the system's C compiler, when it changed. */
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const directory = join(root, "src/guest/agent");
const files = readdirSync(directory).filter((name) => /\.[ch]$/.test(name));
const sources = files.map((name) => join(directory, name));
const target = join(root, "dist/holdfast-run");

/** Returns its path. */
export async function buildRunner(): Promise<string> {
  const newest = Math.max(...sources.map((source) => statSync(source).mtimeMs));
  if (existsSync(target) && statSync(target).mtimeMs > newest) return target;
  mkdirSync(join(root, "dist"), { recursive: true });
  const flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s"];
  const gcc = Bun.spawn(
    [
      "gcc",
      ...flags,
      "-o",
      `${target}.${process.pid}`,
      ...sources.filter((path) => path.endsWith(".c")),
    ],
    {
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  if ((await gcc.exited) !== 0) throw new Error("gcc could not build the runner");
  renameSync(`${target}.${process.pid}`, target);
  return target;
}

if (import.meta.main) process.stdout.write(`${await buildRunner()}\n`);
