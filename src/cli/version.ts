/** `holdfast version`. */
import { build } from "../system/build.ts";
import { type CliCommand, print, printJson } from "./command.ts";

const usage = `usage: holdfast version [--json]`;

export const version: CliCommand = {
  usage,
  run: async (argv) =>
    argv.includes("--json")
      ? printJson(build)
      : print(`holdfast ${build.version} (${build.commit})`),
};
