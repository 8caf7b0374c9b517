/**
 * Where images are kept: a folder per base and per set of boot files, each complete or not there at
 * all. A folder that was published is never written again.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { Fault } from "../core/fault.ts";
import { parseJson } from "../core/json.ts";
import { fsyncPath, publish, readIfThere, writeWhole } from "../system/files.ts";
import type { BootFiles } from "../vmm/vmm.ts";
import type { Base, Images } from "./images.ts";

const digestSchema = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const baseSchema = z.object({
  kind: z.literal("base"),
  digest: digestSchema,
  name: z.string().regex(/^[a-z0-9][a-z0-9.-]{0,62}$/),
  sizeBytes: z.int().min(1),
  builtAtMs: z.int().min(0),
  inputs: z.string(),
  /** Every package file in it, with its hash. */
  packages: z.array(z.object({ file: z.string(), sha256: z.string() })),
});
const bootSchema = z.object({
  kind: z.literal("boot"),
  digest: digestSchema,
  kernelVersion: z.string(),
  builtAtMs: z.int().min(0),
  inputs: z.string(),
});
export type BaseManifest = z.infer<typeof baseSchema>;
export type BootManifest = z.infer<typeof bootSchema>;

const manifestName = "manifest.json";
const keptBoots = 3;

export class ImageStore implements Images {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
    for (const each of ["bases", "boot", "locks", "downloads"])
      mkdirSync(join(root, each), { recursive: true });
  }

  async bases(): Promise<Base[]> {
    return this.baseManifests()
      .map(({ digest, name, sizeBytes, builtAtMs }) => {
        return { digest, name, sizeBytes, builtAtMs, path: this.imageOf(digest) };
      })
      .toSorted((a, b) => b.builtAtMs - a.builtAtMs);
  }

  async bootFiles(): Promise<BootFiles> {
    const current = this.currentBoot();
    if (!current)
      throw new Fault("unavailable", "the boot files are not built", {
        code: "boot_files_missing",
        hint: "holdfast images build",
      });
    const at = (name: string): string => join(this.#folderOf(current), name);
    const [kernelPath, initramfsPath, toolsPath] = [
      at("vmlinux"),
      at("initramfs"),
      at("tools.erofs"),
    ];
    return { kernelPath, initramfsPath, toolsPath };
  }

  /** Those whose image is there as it was published. */
  baseManifests(): BaseManifest[] {
    return this.#manifests("bases", baseSchema).filter(
      ({ digest, sizeBytes }) =>
        existsSync(this.imageOf(digest)) && statSync(this.imageOf(digest)).size === sizeBytes,
    );
  }

  currentBoot(): BootManifest | undefined {
    const digest = readIfThere(join(this.root, "boot", "current"))?.trim();
    return this.bootManifests().find((manifest) => manifest.digest === digest);
  }

  bootManifests(): BootManifest[] {
    return this.#manifests("boot", bootSchema);
  }

  imageOf(digest: string): string {
    return join(this.root, "bases", hexOf(digest), "disk.img");
  }

  lockPathOf(recipe: string): string {
    return join(this.root, "locks", `${recipe}.json`);
  }

  /** Takes a built folder, whose files were fsynced. One that is there already stays. */
  publishBase(built: string, manifest: BaseManifest): void {
    this.#publish(built, manifest);
  }

  /** Also makes it what VMs boot with from now on, and removes those that nothing can need any more. */
  publishBoot(built: string, manifest: BootManifest): void {
    this.#publish(built, manifest);
    this.useBoot(manifest.digest);
    const old = this.bootManifests()
      .toSorted((a, b) => b.builtAtMs - a.builtAtMs)
      .filter(({ digest }) => digest !== manifest.digest)
      .slice(keptBoots - 1);
    // A VM that runs holds its files open; one that boots at this very moment is started again.
    for (const each of old) rmSync(this.#folderOf(each), { recursive: true });
  }

  useBoot(digest: string): void {
    writeWhole(join(this.root, "boot", "current"), `${digest}\n`);
  }

  /** A folder of its own for one build. Those that a crash left are removed. */
  scratch(): string {
    const root = join(this.root, "building");
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root);
    return mkdtempSync(join(root, "build-"));
  }

  #publish(built: string, manifest: BaseManifest | BootManifest): void {
    const target = this.#folderOf(manifest);
    if (this.#isWhole(manifest)) return;
    // Disks are copies: nothing needs what was damaged.
    rmSync(target, { recursive: true, force: true });
    const path = join(built, manifestName);
    writeFileSync(path, `${JSON.stringify(manifest, undefined, 1)}\n`);
    fsyncPath(path);
    fsyncPath(built);
    publish(built, target);
  }

  #isWhole({ kind, digest }: BaseManifest | BootManifest): boolean {
    const whole = kind === "base" ? this.baseManifests() : this.bootManifests();
    return whole.some((each) => each.digest === digest);
  }

  #folderOf({ kind, digest }: Pick<BaseManifest | BootManifest, "kind" | "digest">): string {
    return join(this.root, kind === "base" ? "bases" : "boot", hexOf(digest));
  }

  #manifests<T>(kind: string, schema: z.ZodType<T>): T[] {
    return readdirSync(join(this.root, kind), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => {
        const text = readIfThere(join(this.root, kind, entry.name, manifestName));
        const { data } = schema.safeParse(parseJson(text ?? ""));
        // What was damaged is as good as absent: the next build makes it again.
        return data === undefined ? [] : [data];
      });
  }
}

const hexOf = (digest: string): string => digest.slice("sha256:".length);
