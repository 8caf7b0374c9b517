/** `holdfast guest`: the part of Holdfast that works inside a VM. Started by its init, not by people. */
import { runGuestPart } from "../guest/agent/main.ts";
import { build } from "../system/build.ts";
import { type CliCommand, print } from "./command.ts";

const usage = `usage: holdfast guest

  Runs in a VM and answers the host. Nothing starts it but a VM's own init.`;

export const guest: CliCommand = {
  usage,
  whenMute: "go on",
  run: async (argv) => (argv.length > 0 ? print(usage) : runGuestPart({ version: build.version })),
};
