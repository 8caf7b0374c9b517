/**
 * Which part of src may import which. An arrow that is not here is an error. Read it top to bottom:
 * everything points down, nothing points up or sideways.
 *
 * A file belongs to the longest key that its path begins with. "type x" allows only the types of x.
 */
const nounRules = ["core", "type db/schema.ts"];
const contracts = ["vmm/vmm.ts", "guest/guest.ts", "disk/disk.ts", "images/images.ts"];
const system = ["system/signals.ts", "type system"];
const ground = ["workflow", "db", "core", ...contracts, ...system];

export const arrows: Readonly<Record<string, readonly string[]>> = {
  "main.ts": ["cli", "core"],
  "cli/serve.ts": ["api/admin-key.ts", "appliance.ts", "cli", "core", "system"],
  "cli/guest.ts": ["guest/agent", "cli", "core", "system"],
  cli: ["type api", "images", "core", "system"],
  // The only one that names real implementations.
  "appliance.ts": [
    ...["api", "commands", "sandboxes", "hosts", "workflow", "db"],
    ...["guest", "vmm", "disk", "images", "system", "core"],
  ],
  api: ["commands", "sandboxes", "hosts", "events", ...ground],
  "commands/command.ts": nounRules,
  commands: ["sandboxes", "events", ...ground],
  "sandboxes/sandbox.ts": nounRules,
  sandboxes: ["events", ...ground],
  hosts: ground,
  "events/event.ts": nounRules,
  events: ground,
  workflow: ["db", "core", ...system],
  // The states in the SQL come from the nouns' tables.
  db: [
    "sandboxes/sandbox.ts",
    "commands/command.ts",
    "events/event.ts",
    "core",
    "system/signals.ts",
  ],
  "vmm/vmm.ts": [],
  vmm: ["vmm/vmm.ts", "images/kernel-command-line.ts", "system", "core"],
  "guest/guest.ts": ["vmm/vmm.ts"],
  "guest/agent": ["guest", "system", "core"],
  guest: ["guest/guest.ts", "vmm/vmm.ts", "system", "core"],
  "disk/disk.ts": [],
  disk: ["disk/disk.ts", "system", "core"],
  "images/images.ts": ["vmm/vmm.ts"],
  images: ["images/images.ts", "vmm/vmm.ts", "system", "core"],
  system: ["core"],
  core: [],
};

/** What a start must not load: it would cost memory and time, or unpack a file, for nothing. */
export const unreached: readonly { from: string; never: readonly string[]; why: string }[] = [
  {
    from: "src/main.ts",
    never: ["src/appliance.ts", "src/api", "src/db", "better-sqlite3", "kysely", "zod"],
    why: "only serve needs it, and loads it by import()",
  },
  {
    from: "src/cli/guest.ts",
    never: ["src/appliance.ts", "src/api", "src/db", "better-sqlite3", "kysely", "zod"],
    why: "the guest part stays small",
  },
];

export interface Ban {
  /** Calls, members and modules, as they are written. */
  readonly says: readonly string[];
  /** Files that may say it. */
  readonly allowed: RegExp;
  readonly instead: string;
}

const edges = /^src\/(system|cli|vmm|disk|images|guest|appliance)\b/;

/** What reaches the outside world, and who may. Tests and scripts may. */
export const bans: readonly Ban[] = [
  { says: ["Date.now", "new Date()"], allowed: edges, instead: "clock.now()" },
  { says: ["performance.now"], allowed: edges, instead: "clock.monotonic()" },
  { says: ["setTimeout", "setInterval", "Bun.sleep"], allowed: edges, instead: "clock.sleep()" },
  {
    says: ["Math.random", "randomUUID", "crypto.randomUUID", "crypto.getRandomValues"],
    allowed: edges,
    instead: "random.bytes()",
  },
  {
    says: ["Bun.spawn", "Bun.spawnSync", "Bun.$", "node:child_process"],
    allowed: edges,
    instead: "a port",
  },
  {
    says: ["process.env"],
    allowed: /^src\/(main|system|cli|guest\/agent)\b/,
    instead: "settings",
  },
  { says: ["fetch"], allowed: /^src\/cli\//, instead: "a port" },
  { says: ["console"], allowed: /^$/, instead: "log" },
];

/** Words that say nothing about what a thing is. */
export const emptyWords = /^(Manager|Service|Helper|Util|Utils|Handler|Processor|Data|Info)s?$/;
