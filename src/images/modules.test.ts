import { expect, test } from "bun:test";
import { modulesInOrder } from "./modules.ts";

const dependencies = `kernel/net/a.ko.xz: kernel/net/b.ko.xz kernel/net/c-d.ko.xz
kernel/net/b.ko.xz: kernel/net/c-d.ko.xz
kernel/net/c-d.ko.xz:
kernel/fs/e.ko.zst:
`;

test("what a module depends on is loaded first, and each only once", () => {
  expect(modulesInOrder(dependencies, ["c_d", "a", "e"])).toEqual([
    "kernel/net/c-d.ko.xz",
    "kernel/net/b.ko.xz",
    "kernel/net/a.ko.xz",
    "kernel/fs/e.ko.zst",
  ]);
});

test("a kernel that has one built in lacks its module; one without any is refused", () => {
  expect(modulesInOrder(dependencies, ["ext4", "e"])).toEqual(["kernel/fs/e.ko.zst"]);
  expect(() => modulesInOrder("", ["e"])).toThrow("no known module");
});
