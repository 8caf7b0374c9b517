import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { cpio, file, folder, link } from "./cpio.ts";

test("the same entries give the same bytes, whole words each", () => {
  const entries = [folder("bin"), file("bin/x", "abc", 0o755), link("sh", "bin/x")];
  const first = cpio(entries);
  expect(Buffer.from(first).equals(Buffer.from(cpio(entries)))).toBe(true);
  expect(first.length % 4).toBe(0);
});

test.skipIf(Bun.which("cpio") === null)("cpio reads what is written (needs cpio)", () => {
  const archive = cpio([folder("a"), file("a/b", "hello", 0o600), link("c", "a/b")]);
  const listed = spawnSync("cpio", ["-itv", "--quiet"], { input: archive }).stdout.toString();
  expect(listed).toMatch(/^drwxr-xr-x .* a$/m);
  expect(listed).toMatch(/^-rw------- .* 5 .* a\/b$/m);
  expect(listed).toMatch(/^lrwxrwxrwx .* c -> a\/b$/m);
});
