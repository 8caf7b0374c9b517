/**
 * The sandboxes' disks: one raw image each, made from a base once and never made again. Every call
 * may be repeated.
 */
export interface Disks {
  look(sandbox: string): Promise<"absent" | "ready">;
  /**
   * A copy of the base, grown to `sizeBytes` (sparse), complete or not there at all. A disk that
   * exists is left alone.
   * @throws Fault `full` no room; `missing` no such base.
   */
  make(sandbox: string, from: DiskOrigin): Promise<void>;
  /** The image's path. Does not look whether it exists. */
  pathOf(sandbox: string): string;
  /** Destroys the disk. The caller has made certain that no VM has it open. */
  remove(sandbox: string): Promise<void>;
  /** Sandboxes that have a disk here. */
  list(): Promise<string[]>;
}

export interface DiskOrigin {
  readonly basePath: string;
  readonly sizeBytes: number;
}
