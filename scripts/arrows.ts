/**
 * Which folder of src may import which. An arrow that is not here is an error. Read it top to
 * bottom: everything points down, nothing points up or sideways.
 */
const outside = ["vmm/vmm.ts", "guest/guest.ts", "disk/disk.ts", "images/images.ts"];
const system = ["system/clock.ts", "system/random.ts", "system/signals.ts", "system/log.ts"];
const ground = ["workflow", "db", "core", ...outside, ...system];

export const arrows: Readonly<Record<string, readonly string[]>> = {
  "main.ts": ["cli", "core", "system"],
  cli: ["api", "appliance.ts", "images", "guest/agent", "core", "system"],
  "appliance.ts": [
    "api",
    "commands",
    "sandboxes",
    "hosts",
    "guest",
    "vmm",
    "disk",
    "images",
    "system",
    "db",
    "workflow",
    "core",
  ],
  api: ["commands", "sandboxes", "hosts", ...ground],
  commands: ["sandboxes", ...ground],
  sandboxes: ground,
  hosts: ground,
  workflow: ["db", "core", ...system],
  // The states in the SQL come from the nouns' tables.
  db: ["sandboxes/sandbox.ts", "commands/command.ts", "core", "system/signals.ts"],
  vmm: ["images/kernel-command-line.ts", "system", "core"],
  guest: ["vmm/vmm.ts", "system", "core"],
  disk: ["system", "core"],
  images: ["vmm/vmm.ts", "system", "core"],
  system: ["core"],
  core: [],
};

export interface Ban {
  readonly word: RegExp;
  /** Files that may say it. */
  readonly allowed: RegExp;
  readonly instead: string;
}

/** Words that reach the outside world, and the folders allowed to say them. */
const edges = /^(src\/(system|main|cli|vmm\/|guest\/|disk\/|images\/|appliance)|scripts\/|test\/)/;
export const bans: readonly Ban[] = [
  { word: /\bDate\.now\(|\bnew Date\(\)/, allowed: edges, instead: "clock.now()" },
  { word: /\bsetTimeout\(|\bsetInterval\(/, allowed: edges, instead: "clock.sleep()" },
  { word: /\bMath\.random\(|\brandomUUID\(/, allowed: edges, instead: "random.bytes()" },
  { word: /\bBun\.spawn|node:child_process/, allowed: edges, instead: "processes" },
  {
    word: /\bprocess\.env\b/,
    allowed: /^(src\/(main|system|cli|guest\/agent)|scripts\/|test\/)/,
    instead: "settings",
  },
  { word: /\bfetch\(/, allowed: /^(src\/(cli|api)\/|scripts\/|test\/)/, instead: "a port" },
  { word: /\bconsole\.(log|error|warn|info)/, allowed: /^(scripts|test)\//, instead: "log" },
  {
    word: /\bFIXME\b|\bas any\b|@ts-ignore|@ts-nocheck/,
    allowed: /^scripts\/arrows\.ts$/,
    instead: "a fix",
  },
  { word: /catch \{\s*\}/, allowed: /^scripts\/arrows\.ts$/, instead: "handling it" },
];
