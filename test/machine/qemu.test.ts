import { vmmContract } from "../contracts/vmm.contract.ts";
import { TinyVms } from "./tiny-vms.ts";

vmmContract("QEMU", () => TinyVms.begin());
