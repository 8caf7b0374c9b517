/** Bases and boot files, as sandboxes see them: read-only, named by digest. */
import type { BootFiles } from "../vmm/vmm.ts";

export interface Base {
  /** `sha256:` and 64 hex digits, of the image's bytes. */
  readonly digest: string;
  /** For people: distribution and variant, as `debian-13-slim`. Not unique over time. */
  readonly name: string;
  readonly path: string;
  /** Size of the image, the least a disk made from it can have. */
  readonly sizeBytes: number;
  readonly builtAtMs: number;
}

export interface Images {
  /** Newest first. */
  bases(): Promise<Base[]>;
  /** What a VM boots with. @throws Fault `unavailable` with a hint when they are not built. */
  bootFiles(): Promise<BootFiles>;
}
