/**
 * What we ask of a hypervisor. Every call may be repeated: asking twice is the same as asking once.
 * A VM is named by its sandbox and the number of this run, so that a late answer about an earlier
 * run can never be taken for this one.
 */
export interface VmRef {
  /** The sandbox's id. It is also a path component and a unit name: `core/ids.ts` gives its shape. */
  readonly sandbox: string;
  /** Counts the boots of this sandbox, from 1. Run n+1 begins only after run n was seen ended. */
  readonly run: number;
}

export interface BootFiles {
  /** Uncompressed PVH kernel. */
  readonly kernelPath: string;
  readonly initramfsPath: string;
  /** Read-only erofs image with our guest part, the runner and kernel modules. */
  readonly toolsPath: string;
}

export interface VmSpec {
  readonly ref: VmRef;
  readonly vcpus: number;
  readonly memoryBytes: number;
  /** Raw image, opened read-write by this VM alone. */
  readonly diskPath: string;
  readonly boot: BootFiles;
  readonly hostname: string;
  /** 32 hex digits, the same at every boot of this sandbox and another for every copy. */
  readonly machineId: string;
}

/** How a VM's process ended, as far as the process and its event log tell. */
export type VmEnd =
  | "guest_shutdown"
  | "guest_reboot"
  | "guest_panic"
  /** By `kill`. */
  | "killed"
  /** By anything else: a signal, the host's OOM killer, a VMM fault. */
  | "died"
  /** The VMM refused to start; `detail` has its words. */
  | "launch_failed";

export type VmSight =
  /** Never started, or ended and forgotten. */
  | { readonly state: "absent" }
  /** Its process runs. Says nothing about what runs inside. */
  | { readonly state: "alive" }
  | { readonly state: "ended"; readonly how: VmEnd; readonly detail: string };

export interface VmmDescription {
  readonly driver: "qemu" | "cloud-hypervisor" | "simulated";
  /** "emulated" = no usable KVM; everything about a guest is about ten times slower. */
  readonly acceleration: "kvm" | "emulated";
  /** Why this choice, one sentence: shown by `doctor` and the API. */
  readonly why: string;
  /** Time limits on what a guest does are multiplied by this: 1 on KVM, 10 emulated. */
  readonly timeScale: number;
  /** Boots that may be under way at once. */
  readonly bootSlots: number;
  /** Memory the host spends on a VM beside the guest's own RAM. */
  readonly overheadBytes: number;
}

export interface Vmm {
  /** Fixed for the life of this object. */
  describe(): Promise<VmmDescription>;
  /**
   * Starts the VM's process and returns once it is known to run or to have ended; does not wait for
   * the guest. A no-op when this run is alive. After `kill` of this or a later run it starts nothing.
   * @throws Fault `full` no room; `unavailable` not established, look again; `broken` bad files.
   */
  boot(spec: VmSpec): Promise<void>;
  look(ref: VmRef): Promise<VmSight>;
  /**
   * Lets a VM go on that its VMM halted because the host did not take a write. Returns whether it is
   * halted all the same. @throws Fault `unavailable` the VMM does not answer.
   */
  resume(ref: VmRef): Promise<"runs" | "halted">;
  /** Presses the power button. The guest may ignore it. @throws Fault `unavailable`. */
  powerOff(ref: VmRef): Promise<void>;
  /**
   * Ends the VM for ever: a boot of this run still in flight finds that it may not start. Returns
   * once the process is seen gone and its lock on the disk is free.
   * @throws Fault `unavailable` when the end could not be established.
   */
  kill(ref: VmRef): Promise<void>;
  /** Drops what remains of an ended run: run directory, end record, console. */
  forget(ref: VmRef): Promise<void>;
  /** Every run this installation has started and not forgotten, alive or ended. */
  list(): Promise<VmRef[]>;
  /** The newest bytes of the serial console, at most 64 KiB. Empty when there is none. */
  console(ref: VmRef): Promise<Uint8Array>;
}
