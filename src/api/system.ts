/** What this host is: its version, its hypervisor and its room. */
import { z } from "@hono/zod-openapi";
import { sumRoom, sumUse } from "../sandboxes/use.ts";
import type { ApiPorts } from "./ports.ts";
import { makeApp, reading } from "./routes.ts";
import { json, strict, timeOf, timeSchema } from "./schemas.ts";

const amount = z.object({ limit: z.number(), used: z.number(), free: z.number() });

const systemSchema = z
  .object({
    version: z.string(),
    commit: z.string(),
    started_at: timeSchema,
    host: z.object({ id: z.string() }),
    driver: z.object({
      name: z.string(),
      acceleration: z.enum(["kvm", "emulated"]),
      emulated: z.boolean().openapi({ description: "No usable KVM: about ten times slower." }),
      why: z.string(),
    }),
    default_base: z.string().nullable(),
    capacity: z.object({
      sandboxes: amount,
      sandboxes_running: amount,
      vcpus_running: amount,
      memory_running_bytes: amount,
      machine_memory_bytes: amount,
      disk_total_bytes: amount,
    }),
  })
  .openapi("System");

const getSystem = reading({
  method: "get",
  path: "/v1/system",
  operationId: "getSystem",
  summary: "Version, host, hypervisor and capacity",
  request: { query: strict({}) },
  responses: { 200: json(systemSchema, "This host") },
});

export const systemRoutes = (ports: ApiPorts, startedAtMs: number) =>
  makeApp().openapi(getSystem, async (c) => {
    const { driver, acceleration, why } = ports.driver;
    const emulated = acceleration === "emulated";
    const body = {
      ...ports.build,
      started_at: timeOf(startedAtMs),
      host: { id: ports.host.id },
      driver: { name: driver, acceleration, emulated, why },
      default_base: ports.defaultBase ?? null,
      capacity: await capacityOf(ports),
    };
    return c.json(body, 200);
  });

async function capacityOf({ db, limits, driver }: ApiPorts) {
  const all = await sumUse(db.read);
  const running = await sumRoom(db.read);
  const vmBytes = running.memoryBytes + running.sandboxes * driver.overheadBytes;
  return {
    sandboxes: amountOf(limits.sandboxesTotal, all.sandboxes),
    sandboxes_running: amountOf(limits.sandboxesRunning, running.sandboxes),
    vcpus_running: amountOf(limits.vcpusRunning, running.vcpus),
    memory_running_bytes: amountOf(limits.memoryRunningBytes, running.memoryBytes),
    machine_memory_bytes: amountOf(limits.machineMemoryBytes, vmBytes),
    disk_total_bytes: amountOf(limits.diskTotalBytes, all.diskBytes),
  };
}

const amountOf = (limit: number, used: number) => ({
  limit,
  used,
  free: Math.max(0, limit - used),
});
