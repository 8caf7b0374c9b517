import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../core/fault.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import { messageBytesMax } from "./guest.ts";
import { concat } from "./sync.ts";

const message = fc.record({
  header: fc.record({ type: fc.string(), offset: fc.nat() }),
  payload: fc.uint8Array({ maxLength: 300 }),
});

/** The bytes in pieces, cut at the places that the numbers name. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = places.map((place) => place % (bytes.length + 1)).sort((one, two) => one - two);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

function readAll(reader: FrameReader): { header: unknown; payload: Uint8Array }[] {
  const frames = [];
  for (let frame = reader.next(); frame; frame = reader.next())
    frames.push({
      header: JSON.parse(new TextDecoder().decode(frame.header)) as unknown,
      payload: new Uint8Array(frame.payload),
    });
  return frames;
}

test("messages arrive as they were sent, however their bytes are cut", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), fc.array(fc.nat()), (messages, places) => {
      const bytes = concat([
        new Uint8Array(),
        ...messages.map(({ header, payload }) => encodeFrame(header, payload)),
      ]);
      const reader = new FrameReader();
      const heard = cut(bytes, places).flatMap((piece) => {
        reader.push(piece);
        return readAll(reader);
      });
      expect(heard).toEqual(messages);
      expect(reader.heldBytes).toBe(0);
    }),
  );
});

test("bytes that are no messages are refused by a fault and hold no memory", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), (pieces) => {
      const reader = new FrameReader();
      try {
        for (const piece of pieces) {
          reader.push(piece);
          while (reader.next());
        }
      } catch (error) {
        expect(error).toBeInstanceOf(Fault);
      }
      expect(reader.heldBytes).toBeLessThanOrEqual(pieces.length * 200);
    }),
  );
});

test("a message that claims an impossible length is refused at once", () => {
  for (const length of [0, 4, messageBytesMax + 1, 0xffff_ffff]) {
    const reader = new FrameReader();
    const head = new Uint8Array(4);
    new DataView(head.buffer).setUint32(0, length);
    reader.push(head);
    expect(() => reader.next()).toThrow(Fault);
  }
});

test("zeros after a message that was cut off never complete it", () => {
  fc.assert(
    fc.property(message, fc.nat(), ({ header, payload }, place) => {
      const whole = encodeFrame(header, payload);
      const reader = new FrameReader();
      reader.push(whole.subarray(0, place % whole.length));
      reader.push(new Uint8Array(whole.length + 4));
      expect(() => reader.next()).toThrow(Fault);
    }),
  );
});

test("a message over the limit is not sent", () => {
  expect(() => encodeFrame({}, new Uint8Array(messageBytesMax))).toThrow(Fault);
});
