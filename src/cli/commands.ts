/** Every command of the command line. Each is loaded when it is run, so that none pays for another. */
import type { CliCommand } from "./command.ts";

type Load = () => Promise<CliCommand>;

export const commands: Readonly<Record<string, { about: string; load: Load }>> = {
  ls: { about: "list sandboxes", load: async () => (await import("./ls.ts")).ls },
  create: { about: "create a sandbox", load: async () => (await import("./create.ts")).create },
  start: { about: "start a sandbox", load: async () => (await import("./start.ts")).start },
  stop: { about: "stop sandboxes", load: async () => (await import("./stop.ts")).stop },
  rm: { about: "delete sandboxes", load: async () => (await import("./rm.ts")).rm },
  info: { about: "show a sandbox or the host", load: async () => (await import("./info.ts")).info },
  exec: { about: "run a command", load: async () => (await import("./exec.ts")).exec },
  logs: { about: "show a command's output", load: async () => (await import("./logs.ts")).logs },
  events: { about: "what happened", load: async () => (await import("./events.ts")).events },
  ps: { about: "list commands", load: async () => (await import("./ps.ts")).ps },
  kill: { about: "send a command a signal", load: async () => (await import("./kill.ts")).kill },
  api: { about: "send any API request", load: async () => (await import("./api.ts")).api },
  serve: { about: "run the appliance", load: async () => (await import("./serve.ts")).serve },
  init: { about: "prepare a data directory", load: async () => (await import("./init.ts")).init },
  doctor: { about: "check this machine", load: async () => (await import("./doctor.ts")).doctor },
  images: { about: "build bases", load: async () => (await import("./images.ts")).images },
  guest: { about: "the part inside a VM", load: async () => (await import("./guest.ts")).guest },
  completion: {
    about: "complete commands in a shell",
    load: async () => (await import("./completion.ts")).completionOf(commandNames),
  },
  version: {
    about: "which build this is",
    load: async () => (await import("./version.ts")).version,
  },
};

const commandNames: readonly string[] = Object.keys(commands);
