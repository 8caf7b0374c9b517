/**
 * The kernel inside a compressed bzImage: a hypervisor starts it directly by its PVH entry, which
 * saves seconds of decompression on an emulated processor.
 */
import { Fault } from "../core/fault.ts";

/** Offsets of the setup header: the kernel's Documentation/arch/x86/boot.rst. */
const at = { setupSectors: 0x1f1, magic: 0x202, version: 0x206, payload: 0x248, length: 0x24c };
const headerMagic = 0x53726448;
const versionWithPayload = 0x0208;
const sectorBytes = 512;
const magics = [
  { format: "xz", hex: "fd377a585a00" },
  { format: "zstd", hex: "28b52ffd" },
] as const;

export interface CompressedKernel {
  readonly format: (typeof magics)[number]["format"];
  readonly stream: Uint8Array;
}

/** The stream that unpacks to the ELF kernel. @throws Fault `broken`. */
export function compressedKernel(image: Uint8Array): CompressedKernel {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  if (image.length < 0x260 || view.getUint32(at.magic, true) !== headerMagic)
    throw new Fault("broken", "the kernel is not a bzImage");
  if (view.getUint16(at.version, true) < versionWithPayload)
    throw new Fault("broken", "the kernel's boot protocol is older than 2.08");
  const setup = (view.getUint8(at.setupSectors) || 4) + 1;
  const from = setup * sectorBytes + view.getUint32(at.payload, true);
  const payload = image.subarray(from, from + view.getUint32(at.length, true));
  const begin = Buffer.from(payload.subarray(0, 8)).toString("hex");
  const magic = magics.find(({ hex }) => begin.startsWith(hex));
  if (!magic) throw new Fault("broken", `the kernel is compressed in an unknown way: ${begin}`);
  // The size of what it unpacks to stands behind the stream.
  return { format: magic.format, stream: payload.subarray(0, -4) };
}
