/** Brings images up to date: what is built from the same inputs already is left as it is. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../core/fault.ts";
import { resolve, type Workplace } from "./archive.ts";
import { buildBase, inputsOf } from "./base.ts";
import { bootInputsOf, buildBoot, type GuestPrograms } from "./boot.ts";
import { type Lock, nameOf, readLock, writeLock } from "./lock.ts";
import { bootPackages, bootRecipe, type Recipe, recipes } from "./recipe.ts";
import type { BaseManifest, BootManifest, ImageStore } from "./store.ts";

export interface Builder {
  readonly store: ImageStore;
  readonly say: (progress: string) => void;
}

export interface Built<Manifest> {
  readonly manifest: Manifest;
  /** False: it was there already. */
  readonly isNew: boolean;
}

/** Of a base, as `--base` calls it, or of the boot files. @throws Fault `invalid`. */
export function recipeOf(base: string): Recipe {
  const recipe = recipes[base];
  if (recipe) return recipe;
  throw new Fault("invalid", `there is no recipe "${base}"`, {
    hint: `choose one of: ${Object.keys(recipes).join(", ")}`,
  });
}

/** @param again builds though the inputs are unchanged, and compares. */
export async function bringBase(
  builder: Builder,
  recipe: Recipe,
  again = false,
): Promise<Built<BaseManifest>> {
  return atWork(builder, async (place) => {
    const lock = await lockOf(builder.store, recipe, place);
    const inputs = await inputsOf(recipe, lock, place.log);
    const known = builder.store.baseManifests().find((each) => each.inputs === inputs);
    if (known && !again) return { manifest: known, isNew: false };
    const { folder, digest, sizeBytes } = await buildBase(recipe, lock, place);
    if (known && known.digest !== digest)
      throw new Fault(
        "broken",
        `${recipe.name} came out as ${digest}, and before as ${known.digest}`,
        {
          code: "not_reproducible",
        },
      );
    const packages = lock.packages.map(({ file, sha256 }) => ({ file, sha256 }));
    const rest = { name: recipe.name, digest, sizeBytes, builtAtMs: Date.now(), inputs, packages };
    const manifest: BaseManifest = { kind: "base", ...rest };
    builder.store.publishBase(folder, manifest);
    return { manifest: known ?? manifest, isNew: true };
  });
}

export async function bringBoot(
  builder: Builder,
  programs: GuestPrograms,
): Promise<Built<BootManifest>> {
  return atWork(builder, async (place) => {
    const lock = await lockOf(builder.store, bootRecipe, place);
    const inputs = await bootInputsOf(lock, programs);
    const known = builder.store.bootManifests().find((each) => each.inputs === inputs);
    if (known) {
      builder.store.useBoot(known.digest);
      return { manifest: known, isNew: false };
    }
    const { folder, digest, kernelVersion } = await buildBoot(lock, programs, place);
    const rest = { digest, kernelVersion, builtAtMs: Date.now(), inputs };
    const manifest: BootManifest = { kind: "boot", ...rest };
    builder.store.publishBoot(folder, manifest);
    return { manifest, isNew: true };
  });
}

/** Asks the archives anew: the next build takes what they have now. Returns how many changed. */
export async function refreshLocks(builder: Builder, recipe: Recipe): Promise<number> {
  return atWork(builder, async (place) => {
    let changed = 0;
    for (const each of [recipe, bootRecipe]) {
      const path = builder.store.lockPathOf(each.name);
      const files = new Set(readLock(path)?.packages.map(({ file }) => file));
      const lock = await freshLock(each, place);
      const fresh = lock.packages.filter(({ file }) => !files.has(file));
      changed += fresh.length;
      if (fresh.length > 0) writeLock(path, lock);
    }
    return changed;
  });
}

async function lockOf(
  store: ImageStore,
  recipe: Omit<Recipe, "sizeBytes">,
  place: Workplace,
): Promise<Lock> {
  const path = store.lockPathOf(recipe.name);
  const known = readLock(path);
  if (known) return known;
  const lock = await freshLock(recipe, place);
  writeLock(path, lock);
  return lock;
}

/** Of the boot files' packages only those themselves: nothing of them is installed anywhere. */
async function freshLock(recipe: Omit<Recipe, "sizeBytes">, place: Workplace): Promise<Lock> {
  const lock = await resolve(recipe, place);
  if (recipe !== bootRecipe) return lock;
  return { ...lock, packages: lock.packages.filter((each) => bootPackages.test(nameOf(each))) };
}

async function atWork<T>(
  { store, say }: Builder,
  work: (place: Workplace) => Promise<T>,
): Promise<T> {
  const scratch = store.scratch();
  const place = {
    downloads: join(store.root, "downloads"),
    scratch,
    log: join(store.root, "build.log"),
    say,
  };
  const result = await work(place);
  rmSync(scratch, { recursive: true });
  return result;
}
