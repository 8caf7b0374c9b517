import { expect, test } from "bun:test";
import fc from "fast-check";
import { openCursor, sealCursor } from "./cursors.ts";

const host = { id: "host_1", secret: new Uint8Array(32).fill(7) };

test("a cursor leads back to its position, and only for its purpose and host", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (purpose, position, other) => {
      const cursor = sealCursor(host, purpose, position);
      expect(openCursor(host, purpose, cursor)).toBe(Buffer.from(position).toString());
      const stranger = { ...host, secret: new Uint8Array(32).fill(8) };
      expect(() => openCursor(stranger, purpose, cursor)).toThrow();
      if (other !== purpose) expect(() => openCursor(host, other, cursor)).toThrow();
    }),
  );
});

test("a cursor with any character changed, added or left out is refused", () => {
  const cursor = sealCursor(host, "list", "sb_1");
  for (let at = 0; at < cursor.length; at++) {
    const changed = cursor.slice(0, at) + (cursor[at] === "A" ? "B" : "A") + cursor.slice(at + 1);
    expect(() => openCursor(host, "list", changed)).toThrow();
    expect(() => openCursor(host, "list", cursor.slice(0, at))).toThrow();
    expect(() => openCursor(host, "list", `${cursor.slice(0, at)}=${cursor.slice(at)}`)).toThrow();
  }
});
