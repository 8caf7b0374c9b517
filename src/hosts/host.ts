/** One machine that runs Holdfast, as the records know it. */
export interface Host {
  readonly id: string;
  /** 32 bytes that never leave the host; what it signs is worthless elsewhere. */
  readonly secret: Uint8Array;
}
