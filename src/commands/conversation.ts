/**
 * One connection to one guest part. Listens and records; says what the records ask for. Nothing is
 * acknowledged before it is durable, no command is sent before its record says so, and none is sent
 * to another boot than the one in its record.
 */
import { Fault } from "../core/fault.ts";
import { secondMs } from "../core/units.ts";
import type { Tx } from "../db/open.ts";
import { type Channel, type GuestMessage, protocolVersion } from "../guest/guest.ts";
import { phasesWithVm } from "../sandboxes/sandbox.ts";
import { workLimitMs } from "../sandboxes/stop.ts";
import * as sandboxes from "../sandboxes/store.ts";
import { topics } from "../system/signals.ts";
import type { VmRef } from "../vmm/vmm.ts";
import { wakeWorkflow } from "../workflow/store.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { Dictation } from "./dictation.ts";
import { OutputIntake } from "./intake.ts";
import type { CommandPorts } from "./ports.ts";
import { recordEnd, recordRefusal, recordSignal, recordStart, recordStdin } from "./reports.ts";
import { findCommand } from "./store.ts";

const pingPeriodMs = 5 * secondMs;
/** Times the VMM's scale: a channel on which nothing comes is opened anew. */
const answerMaxMs = 20 * secondMs;

type Hello = Extract<GuestMessage, { type: "hello" }>;

export class Conversation {
  readonly #ports: CommandPorts;
  readonly #ref: VmRef;
  readonly #channel: Channel;
  readonly #intake: OutputIntake;
  #bootId: string | undefined;
  #ready = false;
  #open = true;
  #spoke = false;
  #heardAt: number;

  constructor(ports: CommandPorts, ref: VmRef, channel: Channel) {
    this.#ports = ports;
    this.#ref = ref;
    this.#channel = channel;
    this.#heardAt = ports.clock.monotonic();
    const acknowledgements = new Acknowledgements((message) => this.#say(message));
    this.#intake = new OutputIntake(ports.output, ports.clock, (commandId, offset) =>
      acknowledgements.say(commandId, offset),
    );
  }

  /** Until either side closes. @returns whether the guest part said anything. */
  async run(): Promise<boolean> {
    const sandbox = await sandboxes.getSandbox(this.#ports.db.read, this.#ref.sandbox);
    await this.#channel.send({
      type: "hello",
      protocol: protocolVersion,
      host_time_ms: this.#ports.clock.now(),
      hostname: sandbox.name,
    });
    const speaking = this.#speak();
    try {
      await this.#listen();
    } finally {
      this.#open = false;
      this.#channel.close();
      this.#ports.signals.notify([topics.conversation(this.#ref.sandbox)]);
      await speaking;
    }
    return this.#spoke;
  }

  async #listen(): Promise<void> {
    while (true) {
      const message = await this.#channel.receive();
      if (message === undefined) return;
      this.#spoke = true;
      this.#heardAt = this.#ports.clock.monotonic();
      await this.#hear(message);
      // Only now: what breaks the protocol vouches for nobody.
      this.#ports.sightings.heard(this.#ref);
    }
  }

  async #hear(message: GuestMessage): Promise<void> {
    if (message.type === "hello") return this.#hearHello(message);
    if (this.#bootId === undefined) throw broken("it spoke before its hello");
    switch (message.type) {
      case "ready":
        this.#ready = true;
        this.#wakeSpeaker();
        return;
      case "output":
        return this.#hearOutput(message);
      case "ended":
        return this.#hearEnd(message);
      case "started":
        return this.#record((tx) => recordStart(tx, this.#report(message)));
      case "launch_refused":
        return this.#record((tx) => recordRefusal(tx, this.#report(message)));
      case "signal_done":
        return this.#record((tx) => recordSignal(tx, this.#report(message)));
      case "stdin_taken":
        return this.#record((tx) => recordStdin(tx, this.#report(message)));
      case "powering_off":
      case "pong":
        return;
    }
  }

  /** From here on the guest is vouched for: it answered, in this run, as this boot. */
  async #hearHello(hello: Hello): Promise<void> {
    if (hello.protocol !== protocolVersion) throw broken("it speaks another protocol");
    const known = this.#bootId;
    if (known !== undefined) throw broken("it said hello twice");
    this.#bootId = hello.guest_boot_id;
    await this.#record((tx) => this.#recordHello(tx, hello));
  }

  async #recordHello(tx: Tx, hello: Hello): Promise<void> {
    const sandbox = await sandboxes.findSandbox(tx, this.#ref.sandbox);
    if (!sandbox || sandbox.run !== this.#ref.run || !phasesWithVm.includes(sandbox.phase)) return;
    // One run is one boot: the VMM ends with a reboot. Another id is a guest that lies.
    if (sandbox.guest_boot_id !== null && sandbox.guest_boot_id !== hello.guest_boot_id)
      throw broken("it claims to be another boot");
    const nowMs = this.#ports.clock.now();
    const changes = { guest_boot_id: hello.guest_boot_id, guest_seen_at_ms: nowMs };
    if (sandbox.phase === "lost" || sandbox.phase === "paused") {
      const reason = "guest_answered";
      await sandboxes.moveSandbox(tx, { id: sandbox.id, event: "seen", reason, nowMs, changes });
      return;
    }
    await sandboxes.changeSandbox(tx, sandbox.id, changes);
    await wakeWorkflow(tx, sandbox.id);
  }

  async #hearOutput(message: Extract<GuestMessage, { type: "output" }>): Promise<void> {
    await this.#intake.take(this.#ref.sandbox, this.#ports.db.read, message);
  }

  /**
   * All output first: an end that is on record promises that nothing is missing before it. One that
   * has left the records was recorded long ago.
   */
  async #hearEnd(message: Extract<GuestMessage, { type: "ended" }>): Promise<void> {
    if (await findCommand(this.#ports.db.read, message.command_id)) {
      await this.#intake.settled(message.command_id, message.output_bytes);
      await this.#record((tx) => recordEnd(tx, this.#report(message)));
    }
    await this.#say({ type: "forget", command_id: message.command_id });
  }

  #report<M>(message: M) {
    return { message, ref: this.#ref, nowMs: this.#ports.clock.now() };
  }

  #record(work: (tx: Tx) => Promise<void>): Promise<void> {
    return this.#ports.db.write(work);
  }

  /** Says what the records ask for, on every signal and by period, until the channel closes. */
  async #speak(): Promise<void> {
    const dictation = new Dictation(this.#ports, this.#ref, this.#channel);
    const { timeScale } = this.#ports.driver;
    let pingId = 0;
    try {
      while (this.#open) {
        const topic = topics.conversation(this.#ref.sandbox);
        const signal = this.#ports.signals.wait(topic, pingPeriodMs);
        const quietMs = this.#ports.clock.monotonic() - this.#heardAt;
        if (quietMs > answerMaxMs * timeScale) throw broken("it has not answered for too long");
        if (quietMs >= pingPeriodMs) await this.#channel.send({ type: "ping", id: ++pingId });
        if (this.#ready) await dictation.say(this.#bootId ?? "", workLimitMs * timeScale);
        await signal;
      }
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      // Whoever listens ends with the channel; what was to be said is said on the next one.
      this.#channel.close();
    }
  }

  #wakeSpeaker(): void {
    this.#ports.signals.notify([topics.conversation(this.#ref.sandbox)]);
  }

  /** Where it cannot be said, nothing more can; but what was received is still heard to the end. */
  async #say(message: Parameters<Channel["send"]>[0]): Promise<void> {
    try {
      await this.#channel.send(message);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.#channel.close();
    }
  }
}

/** A guest part that breaks the protocol is cut off; the next connection starts afresh. */
function broken(why: string): Fault {
  return new Fault("unavailable", `guest part: ${why}`, { code: "guest_protocol" });
}
