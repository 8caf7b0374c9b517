/**
 * The contract between host and guest part: the messages, and the channel that carries them. Types
 * only, so that the guest part loads nothing else; the host checks what it receives against
 * `messages.ts`, because the guest is hostile.
 *
 * Ordering (must): output is acknowledged only when durable on the host; `forget` is sent only when
 * the end and all output are durable; a launch is sent only after the record says so.
 */
import type { VmRef } from "../vmm/vmm.ts";

/** Refused when the two differ: the tools disk always carries the host's own version. */
export const protocolVersion = 1;

/**
 * Bytes of one message, header and payload together; a longer one ends the connection. Room for the
 * longest arguments and environment that are accepted, in JSON's longest spelling (six times).
 */
export const messageBytesMax = 2 * 1024 * 1024;

/** Output a guest part may have in flight, per command, before it waits for an acknowledgement. */
export const outputWindowBytes = 8 * 1024 * 1024;

export interface LaunchMessage {
  readonly type: "launch";
  readonly command_id: string;
  /** The boot this launch is meant for. Another boot refuses it: nothing runs twice. */
  readonly guest_boot_id: string;
  readonly argv: readonly string[];
  /** Absolute; null = the user's home directory. */
  readonly cwd: string | null;
  /** Added to a small fixed environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  /** Ended by the runner when it has passed, even while nobody is connected. */
  readonly timeout_ms: number | null;
  /** Whether stdin stays open for `stdin` messages; otherwise it is /dev/null. */
  readonly stdin: boolean;
}

export type HostMessage =
  /** First on every connection. The guest part answers `hello`, then every command it holds, then `ready`. */
  | {
      readonly type: "hello";
      readonly protocol: number;
      readonly host_time_ms: number;
      readonly hostname: string;
    }
  | LaunchMessage
  /** `offset` counts the bytes of stdin before `payload`: bytes that came before are not written twice. */
  | {
      readonly type: "stdin";
      readonly command_id: string;
      readonly offset: number;
      readonly eof: boolean;
      readonly payload: Uint8Array;
    }
  /** To the command's process group; `KILL` to its whole cgroup. `request_id` makes a resend harmless. */
  | {
      readonly type: "signal";
      readonly command_id: string;
      readonly request_id: string;
      readonly signal: SignalName;
    }
  /** Everything before `offset` (bytes of both streams together) is durable on the host. */
  | { readonly type: "ack"; readonly command_id: string; readonly offset: number }
  /** The end is durable on the host: drop the record. */
  | { readonly type: "forget"; readonly command_id: string }
  /** End all commands (TERM, then KILL after `grace_ms`), report them, sync, power off. */
  | { readonly type: "power_off"; readonly grace_ms: number }
  | { readonly type: "ping"; readonly id: number };

export const signalNames = [
  "HUP",
  "INT",
  "QUIT",
  "KILL",
  "USR1",
  "USR2",
  "TERM",
  "CONT",
  "STOP",
  "TSTP",
  "WINCH",
] as const;
export type SignalName = (typeof signalNames)[number];

export type LaunchFailure =
  | "not_found"
  | "not_executable"
  | "bad_cwd"
  | "bad_user"
  | "too_long"
  | "no_resources"
  | "other";

/** What the runner saw. Signals are named without SIG, unknown ones as "RT34". */
export type CommandEnd =
  | { readonly kind: "exited"; readonly exit_code: number }
  | { readonly kind: "signal"; readonly signal: string }
  | { readonly kind: "launch_failed"; readonly reason: LaunchFailure; readonly detail: string }
  | {
      readonly kind: "timed_out";
      readonly exit_code: number | null;
      readonly signal: string | null;
    }
  | {
      readonly kind: "resource_exhausted";
      readonly resource: "memory" | "pids" | "disk";
      readonly limit_bytes: number | null;
      readonly peak_bytes: number | null;
    }
  /** Its runner is gone without a word: how it ended cannot be told. */
  | { readonly kind: "unknown" };

export interface CommandUsage {
  readonly cpu_ms: number;
  readonly memory_peak_bytes: number | null;
  readonly oom_kills: number;
}

export type GuestMessage =
  | {
      readonly type: "hello";
      readonly protocol: number;
      readonly guest_boot_id: string;
      readonly version: string;
      readonly uptime_ms: number;
    }
  /** All commands held by the guest part have been reported since `hello`. */
  | { readonly type: "ready" }
  /** Sent when it happens and again after every hello, until forgotten. */
  | {
      readonly type: "started";
      readonly command_id: string;
      readonly pid: number;
      readonly at_ms: number;
    }
  /** Sent after all of the command's output, and again after every hello, until forgotten. */
  | {
      readonly type: "ended";
      readonly command_id: string;
      readonly end: CommandEnd;
      readonly usage: CommandUsage;
      readonly at_ms: number;
      /** Bytes of both streams: the end is recorded only when all of them are durable. */
      readonly output_bytes: number;
      /** The first of our signals that was delivered while it ran, if any. */
      readonly signalled: SignalName | null;
    }
  /** Consecutive per command: `offset` + payload length = the next one's `offset`. */
  | {
      readonly type: "output";
      readonly command_id: string;
      readonly offset: number;
      readonly stream: "stdout" | "stderr";
      readonly at_ms: number;
      readonly payload: Uint8Array;
    }
  /** All of stdin before `offset` was taken over; `closed`: nothing more is wanted. */
  | {
      readonly type: "stdin_taken";
      readonly command_id: string;
      readonly offset: number;
      readonly closed: boolean;
    }
  | {
      readonly type: "signal_done";
      readonly command_id: string;
      readonly request_id: string;
      readonly delivered: boolean;
    }
  /** A launch that will never happen here: this is another boot than the one it was meant for. */
  | {
      readonly type: "launch_refused";
      readonly command_id: string;
      readonly reason: "wrong_boot" | "malformed" | "powering_off";
    }
  /** Sent once, when a `power_off` has begun. */
  | { readonly type: "powering_off" }
  | { readonly type: "pong"; readonly id: number; readonly time_ms: number };

/** One conversation with one guest part. Both directions keep their order. */
export interface Channel {
  /** Returns once the transport has room for more. @throws Fault `unavailable` once it is closed. */
  send(message: HostMessage): Promise<void>;
  /** The next message; undefined once the channel is closed. Not reading is what slows a guest down. */
  receive(): Promise<GuestMessage | undefined>;
  close(): void;
}

export interface Guests {
  /**
   * Opens the one channel to this VM's guest part, past whatever an earlier connection left in the
   * pipe; an earlier channel to it ends. Sends nothing yet.
   * @throws Fault `unavailable` no such VM, or its guest part does not answer yet.
   */
  open(ref: VmRef): Promise<Channel>;
}
