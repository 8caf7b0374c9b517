/**
 * How a VM's process comes into being without being ours: it holds none of our descriptors and does
 * not end with us.
 */
export interface Program {
  /** Unique while it runs; letters, digits, `_` and `-`. */
  readonly name: string;
  /** Absolute path of the program, then its arguments. */
  readonly argv: readonly string[];
}

export interface Launcher {
  readonly kind: "systemd" | "detached";
  /** What this machine cannot give a VM, one sentence; undefined when nothing is missing. */
  readonly lacks: string | undefined;
  /**
   * Starts the program; may return before it runs. May be called twice: what it starts has to make
   * sure itself that it is there only once.
   * @throws Fault `unavailable` not started, or not known to be.
   */
  launch(program: Program): Promise<void>;
  /** SIGKILLs whatever is left of the program, if anything; does not wait for it. */
  end(name: string): Promise<void>;
  /** Drops what remains of a program that ended. */
  forget(name: string): Promise<void>;
}
