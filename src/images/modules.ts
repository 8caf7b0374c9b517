/** The kernel modules that a guest needs before its tools disk is mounted, and in which order. */
import { Fault } from "../core/fault.ts";

/** What has virtio disks and our file systems; a kernel that has one built in lacks the module. */
export const wantedModules: readonly string[] = [
  ...["virtio_pci", "virtio_blk", "virtio_console", "virtio_rng", "virtio_net", "erofs", "ext4"],
  ...["overlay", "autofs4", "vmw_vsock_virtio_transport", "button", "pvpanic_pci"],
];

/**
 * Paths of the modules and all they depend on, what is depended on first.
 * @param dependencies the text of modules.dep: PATH: PATH…, per line (modules.dep(5)).
 */
export function modulesInOrder(dependencies: string, wanted: readonly string[]): string[] {
  const table = new Map(
    dependencies.split("\n").flatMap((line): [string, string[]][] => {
      const [path = "", rest = ""] = line.split(":");
      return path === "" ? [] : [[path, rest.split(" ").filter((each) => each !== "")]];
    }),
  );
  const byName = new Map([...table.keys()].map((path) => [moduleName(path), path]));
  const order = new Set<string>();
  for (const name of wanted) {
    const path = byName.get(name);
    if (path === undefined) continue;
    // modules.dep names the farthest dependency last.
    for (const each of [...(table.get(path) ?? [])].reverse()) order.add(each);
    order.add(path);
  }
  if (order.size === 0) throw new Fault("broken", "the kernel's modules.dep names no known module");
  return [...order];
}

/** As the kernel calls it: the file's name, dashes as underscores. */
export const moduleName = (path: string): string =>
  (path.split("/").at(-1) ?? "").replace(/\.ko(\.xz|\.zst|\.gz)?$/, "").replaceAll("-", "_");
