/** Builds dist/holdfast: one file with everything in it, for the host and for the guest. */
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { buildRunner } from "./build-runner.ts";

/** Who unpacked a release has no repository, and perhaps no git. */
const git = Bun.which("git");
const describe = ["describe", "--always", "--dirty", "--abbrev=12"];
const stdout = git === null ? "" : Bun.spawnSync([git, ...describe]).stdout;
const commit = stdout.toString().trim() || "unknown";

await buildRunner();
mkdirSync("dist/new", { recursive: true });
// Baseline: the guest part runs on emulated processors without AVX2.
const result = await Bun.build({
  entrypoints: ["src/main.ts"],
  compile: {
    target: "bun-linux-x64-baseline",
    outfile: "dist/new/holdfast",
    autoloadDotenv: false,
    autoloadBunfig: false,
  },
  define: { HOLDFAST_COMMIT: JSON.stringify(commit) },
  minify: true,
  bytecode: true,
  format: "esm",
  sourcemap: "linked",
  external: ["better-sqlite3/linux-arm64"],
});
if (!result.success) {
  for (const message of result.logs) console.error(message);
  process.exit(1);
}
// In one step: a failed build leaves the earlier binary as it was.
renameSync("dist/new/holdfast", "dist/holdfast");
rmSync("dist/new", { recursive: true });
