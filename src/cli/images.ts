/** `holdfast images`: builds, refreshes and lists what sandboxes start from and boot with. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Fault, faultKinds } from "../core/fault.ts";
import { type Builder, bringBase, bringBoot, recipeOf, refreshLocks } from "../images/build.ts";
import { guestPrograms } from "../images/programs.ts";
import { ImageStore } from "../images/store.ts";
import { holdLock } from "../system/process.ts";
import { type Parsed, parseArguments, UsageError } from "./arguments.ts";
import { dataDirectory } from "./client.ts";
import { type CliCommand, note, print, printJson, table } from "./command.ts";
import { prepareData } from "./data.ts";

const usage = `usage: holdfast images build [--base NAME] [--again] [--data DIR] [--json]
       holdfast images lock  [--base NAME] [--data DIR] [--json]
       holdfast images ls    [--data DIR] [--json]

  build  makes the base and the boot files, or finds that they are up to date; --again builds
         the base once more and compares
  lock   takes the newest packages from the archive, for the next build
  ls     lists what is built

exit codes: 0 · 1 failed, run it again to go on · 2 usage · 4 not permitted`;

const flags = {
  data: { kind: "text" },
  base: { kind: "text" },
  again: { kind: "switch" },
  json: { kind: "switch" },
  help: { kind: "switch", short: "h" },
} as const;

type Wanted = Parsed<typeof flags>["flags"];

export const images: CliCommand = {
  usage,
  run: async (argv) => {
    const { flags: wanted, words } = parseArguments(argv, flags);
    if (wanted.help) return print(usage);
    const [verb, ...others] = words;
    const act = verb === undefined ? undefined : verbs[verb];
    if (!act || others.length > 0) throw new UsageError("say one of: build, lock, ls");
    try {
      return await act(wanted, openBuilder(dataDirectory(wanted.data), verb !== "ls"));
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      note(`error: ${error.message}${error.hint ? `\n  what to do: ${error.hint}` : ""}`);
      return faultKinds[error.kind].exit;
    }
  },
};

const verbs: Readonly<Record<string, (wanted: Wanted, builder: Builder) => Promise<number>>> = {
  build: async (wanted, builder) => {
    const base = await bringBase(builder, recipeOf(wanted.base ?? "slim"), wanted.again);
    const boot = await bringBoot(builder, guestPrograms());
    const results = [base, boot].map(({ manifest: { kind, digest }, isNew }) => {
      return { kind, digest, is_new: isNew };
    });
    if (wanted.json) for (const result of results) printJson(result);
    else
      for (const { kind, digest, is_new } of results)
        print(`${kind} ${digest} ${is_new ? "built" : "is up to date"}`);
    return 0;
  },
  lock: async (wanted, builder) => {
    const changed = await refreshLocks(builder, recipeOf(wanted.base ?? "slim"));
    if (wanted.json) return printJson({ packages_changed: changed });
    return print(`${changed} packages are new; holdfast images build takes them`);
  },
  ls: async (wanted, { store }) => {
    const rows = [...store.baseManifests(), ...store.bootManifests()].map((each) => ({
      kind: each.kind,
      name: each.kind === "base" ? each.name : each.kernelVersion,
      digest: each.digest,
      built_at: new Date(each.builtAtMs).toISOString(),
    }));
    if (wanted.json) return printJson({ data: rows });
    const cells = rows.map((row) => [row.kind, row.name, row.built_at, row.digest]);
    return print(table(["KIND", "NAME", "BUILT", "DIGEST"], cells));
  },
};

function openBuilder(data: string, isToBuild: boolean): Builder {
  const root = join(data, "images");
  if (isToBuild) {
    prepareData(data);
    mkdirSync(root, { recursive: true });
    holdLock(join(root, "lock"));
  }
  return { store: new ImageStore(root), say: note };
}
