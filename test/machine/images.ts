/** The images that the machine tests boot: built once, by the test run's first stage. */
import { join } from "node:path";
import { ImageStore } from "../../src/images/store.ts";

const data = join(import.meta.dir, "..", "..", ".cache", "machine");

/** @throws Fault `unavailable` from its calls where `scripts/test images` has not been run. */
export const testImages = (): ImageStore => new ImageStore(join(data, "images"));
