import { expect, test } from "bun:test";
import { cpio, file, folder, link } from "./cpio.ts";

test("the same entries give the same bytes, whole words each", () => {
  const entries = [folder("bin"), file("bin/x", "abc", 0o755), link("sh", "bin/x")];
  const first = cpio(entries);
  expect(Buffer.from(first).equals(Buffer.from(cpio(entries)))).toBe(true);
  expect(first.length % 4).toBe(0);
});

test("an entry is as the format says: magic, mode and sizes in hex, name, content", () => {
  const text = Buffer.from(cpio([file("a/b", "hello", 0o600)])).toString("latin1");
  expect(text.slice(0, 6)).toBe("070701");
  expect(text.slice(14, 22)).toBe("00008180");
  expect(text.slice(54, 62)).toBe("00000005");
  expect(text.slice(94, 102)).toBe("00000004");
  expect(text.slice(110, 121)).toBe("a/b\0\0\0hello");
  expect(text).toContain("TRAILER!!!");
});
