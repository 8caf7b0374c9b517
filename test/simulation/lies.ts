/** What a hostile guest part says in place of the truth, or beside it. Well-formed, every time. */
import type { GuestMessage } from "../../src/guest/guest.ts";
import type { VmRef } from "../../src/vmm/vmm.ts";
import type { SeededRandom } from "./random.ts";

export interface Known {
  readonly ref: VmRef;
  /** Commands of any sandbox. */
  readonly commands: readonly string[];
}

const honesty = 0.8;
const usage = { cpu_ms: 0, memory_peak_bytes: null, oom_kills: 0 };
const otherBoot = "00000000-0000-4000-8000-000000000000";

export function lie(random: SeededRandom, truth: GuestMessage, known: Known): GuestMessage[] {
  if (random.chance(honesty)) return [truth];
  const command_id = random.pick(known.commands) ?? "cmd_00000000000000000000000000";
  const offset = random.pick([0, 1, 10, 5_000, 2 ** 40]) ?? 0;
  const payload = new Uint8Array(random.between(0, 2_000)).fill(0x21);
  const lies: (() => GuestMessage)[] = [
    () => ({ type: "output", command_id, offset, stream: "stderr", at_ms: 0, payload }),
    () => ({ type: "started", command_id, pid: 1, at_ms: 0 }),
    () => ({
      type: "ended",
      command_id,
      end: { kind: "exited", exit_code: 99 },
      usage,
      at_ms: 0,
      output_bytes: offset,
      signalled: random.pick([null, "TERM"]) ?? null,
    }),
    () => ({ type: "launch_refused", command_id, reason: random.pick(refusals) ?? "malformed" }),
    () => ({ type: "stdin_taken", command_id, offset, closed: random.chance(0.5) }),
    () => ({ type: "signal_done", command_id, request_id: "req_1", delivered: true }),
    () => ({ ...hello, guest_boot_id: otherBoot }),
    () => ({ ...hello, protocol: 99, guest_boot_id: otherBoot }),
    () => ({ type: "ready" }),
    () => ({ type: "powering_off" }),
    () => ({ type: "pong", id: 2 ** 40, time_ms: 0 }),
  ];
  const told = random.pick(lies)?.() ?? truth;
  return random.chance(0.5) ? [told] : [truth, told, told];
}

const hello = { type: "hello", protocol: 1, version: "a lie", uptime_ms: 0 } as const;
const refusals = ["wrong_boot", "malformed", "powering_off"] as const;
