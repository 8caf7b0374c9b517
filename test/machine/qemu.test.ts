import { test } from "bun:test";
import { vmmContract } from "../contracts/vmm.contract.ts";
import { findKernel, TinyVms } from "./tiny-vms.ts";

const kernel = findKernel();
if (kernel === undefined)
  test.skip("QEMU: there is no kernel to boot; HOLDFAST_TEST_KERNEL", () => {});
else vmmContract("QEMU", () => TinyVms.begin(kernel));
