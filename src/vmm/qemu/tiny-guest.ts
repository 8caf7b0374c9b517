/**
 * The smallest guests there are: an initramfs of a few hundred bytes whose init is a handful of
 * system calls. One shows whether a kernel runs here at all, user mode included; needs no tool.
 */

/** x86-64 machine code that falls through to what follows it. */
export type Code = Buffer;

/** cpio(5), new ASCII format: /dev/console for init's output, and init. */
export function tinyInitramfs(...code: Code[]): Buffer {
  return Buffer.concat([
    entry({ name: "dev", mode: 0o40755 }),
    entry({ name: "dev/console", mode: 0o20600, device: [5, 1] }),
    entry({ name: "init", mode: 0o100755, bytes: executable(Buffer.concat(code)) }),
    entry({ name: "TRAILER!!!", mode: 0 }),
  ]);
}

/** write(1, text) */
export function print(text: string): Code {
  const bytes = Buffer.from(text);
  // call over the text; pop its address into rsi
  const address = [Buffer.of(0xe8), int32(bytes.length), bytes, Buffer.of(0x5e)];
  return Buffer.concat([...address, load(rax, 1), load(rdi, 1), load(rdx, bytes.length), syscall]);
}

/** reboot(2): the kernel checks two magic numbers. */
export const powerOff = (): Code => reboot(0x4321fedc);
export const restart = (): Code => reboot(0x01234567);

/** exit(0): a kernel without its init panics. */
export const exit = (): Code => systemCall(60, 0);

/** pause(), for ever: `jmp` back over itself and the call. */
export function sleep(): Code {
  const pause = systemCall(34);
  return Buffer.concat([pause, Buffer.of(0xeb, 256 - (pause.length + 2))]);
}

/** Begins the code anew at its first instruction, for ever. */
export function repeat(code: Code): Code {
  return Buffer.concat([code, Buffer.of(0xe9), int32(-(code.length + 5))]);
}

const rax = 0xb8;
const rdi = 0xbf;
const rsi = 0xbe;
const rdx = 0xba;
const syscall = Buffer.of(0x0f, 0x05);

function reboot(command: number): Code {
  return systemCall(169, 0xfee1dead, 672274793, command);
}

function systemCall(number: number, ...values: number[]): Code {
  const registers = [rdi, rsi, rdx];
  const loads = values.map((value, at) => load(registers[at] ?? rdx, value));
  return Buffer.concat([load(rax, number), ...loads, syscall]);
}

/** mov register, imm32 */
const load = (register: number, value: number): Code =>
  Buffer.concat([Buffer.of(register), int32(value)]);

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value | 0);
  return bytes;
}

const loadAddress = 0x400000n;
const elfHeadBytes = 64;
const programHeadBytes = 56;

/** elf(5): one segment, readable and executable, that holds the whole file. */
function executable(code: Code): Buffer {
  const head = Buffer.alloc(elfHeadBytes + programHeadBytes);
  head.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  head.writeUInt16LE(2, 16);
  head.writeUInt16LE(62, 18);
  head.writeUInt32LE(1, 20);
  head.writeBigUInt64LE(loadAddress + BigInt(head.length), 24);
  head.writeBigUInt64LE(BigInt(elfHeadBytes), 32);
  head.writeUInt16LE(elfHeadBytes, 52);
  head.writeUInt16LE(programHeadBytes, 54);
  head.writeUInt16LE(1, 56);
  const size = BigInt(head.length + code.length);
  head.writeUInt32LE(1, elfHeadBytes);
  head.writeUInt32LE(5, elfHeadBytes + 4);
  for (const at of [16, 24]) head.writeBigUInt64LE(loadAddress, elfHeadBytes + at);
  for (const at of [32, 40]) head.writeBigUInt64LE(size, elfHeadBytes + at);
  head.writeBigUInt64LE(4096n, elfHeadBytes + 48);
  return Buffer.concat([head, code]);
}

interface Entry {
  readonly name: string;
  readonly mode: number;
  readonly bytes?: Buffer;
  readonly device?: readonly [major: number, minor: number];
}

function entry({ name, mode, bytes = Buffer.alloc(0), device = [0, 0] }: Entry): Buffer {
  const fields = [0, mode, 0, 0, 1, 0, bytes.length, 0, 0, ...device, name.length + 1, 0];
  const hex = fields.map((field) => field.toString(16).padStart(8, "0")).join("");
  return Buffer.concat([padded(Buffer.from(`070701${hex}${name}\0`)), padded(bytes)]);
}

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
