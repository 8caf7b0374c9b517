import { expect, test } from "bun:test";
import { compressedKernel } from "./bzimage.ts";

function imageWith(payload: Uint8Array): Uint8Array {
  const image = new Uint8Array(4096 + payload.length);
  const view = new DataView(image.buffer);
  view.setUint8(0x1f1, 3);
  view.setUint32(0x202, 0x53726448, true);
  view.setUint16(0x206, 0x020f, true);
  view.setUint32(0x248, 2048, true);
  view.setUint32(0x24c, payload.length, true);
  image.set(payload, 4096);
  return image;
}

test("the stream is found by the header, without the size behind it", () => {
  const zstd = Buffer.from("28b52ffd01020304aabbccdd", "hex");
  const { format, stream } = compressedKernel(imageWith(zstd));
  expect(format).toBe("zstd");
  expect(Buffer.from(stream).toString("hex")).toBe("28b52ffd01020304");
});

test("what is no kernel, or packed in an unknown way, is refused", () => {
  expect(() => compressedKernel(new Uint8Array(10))).toThrow("not a bzImage");
  expect(() => compressedKernel(new Uint8Array(8192))).toThrow("not a bzImage");
  expect(() => compressedKernel(imageWith(Buffer.from("BZh91AY&SY")))).toThrow("unknown way");
});
