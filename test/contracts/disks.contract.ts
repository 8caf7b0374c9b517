/** What any store of disks must do: run against the simulated one and the real one. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { DiskOrigin, Disks } from "../../src/disk/disk.ts";
import { newRef } from "./vmm.contract.ts";

export interface DisksWorld {
  disks: Disks;
  base: DiskOrigin;
  /** As after a restart. */
  reopen: () => Promise<Disks>;
  end: () => Promise<void>;
}

export const newSandbox = (): string => newRef().sandbox;

export function disksContract(name: string, begin: () => Promise<DisksWorld>): void {
  let world: DisksWorld;
  beforeAll(async () => {
    world = await begin();
  });
  afterAll(() => world.end());

  test(`${name}: a disk is absent, then made, then ready, and stays so`, async () => {
    const [sandbox, other] = [newSandbox(), newSandbox()];
    expect(await world.disks.look(sandbox)).toBe("absent");
    await world.disks.make(sandbox, world.base);
    expect(await world.disks.look(sandbox)).toBe("ready");
    expect(await world.disks.look(other)).toBe("absent");
    expect(await (await world.reopen()).look(sandbox)).toBe("ready");
    expect(await world.disks.list()).toEqual([sandbox]);
    await world.disks.remove(sandbox);
  });

  test(`${name}: making a disk again, at once or later, leaves it as it is`, async () => {
    const sandbox = newSandbox();
    const { base } = world;
    await Promise.all([world.disks.make(sandbox, base), world.disks.make(sandbox, base)]);
    await world.disks.make(sandbox, base);
    expect(await world.disks.list()).toEqual([sandbox]);
    await world.disks.remove(sandbox);
  });

  test(`${name}: a removed disk is gone, and removing it again is no mistake`, async () => {
    const sandbox = newSandbox();
    await world.disks.remove(sandbox);
    await world.disks.make(sandbox, world.base);
    await world.disks.remove(sandbox);
    await world.disks.remove(sandbox);
    expect(await world.disks.look(sandbox)).toBe("absent");
    expect(await (await world.reopen()).list()).toEqual([]);
  });

  test(`${name}: a disk from a base that is not there is missing, and is not half made`, async () => {
    const sandbox = newSandbox();
    const from = { ...world.base, basePath: "/no/such/base" };
    expect(world.disks.make(sandbox, from)).rejects.toMatchObject({ kind: "missing" });
    expect(await world.disks.look(sandbox)).toBe("absent");
    expect(await world.disks.list()).toEqual([]);
  });
}
