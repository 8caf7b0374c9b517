/** Pss of `serve`: idle, and with a thousand sandboxes on record. */
import { Appliance } from "../machine/appliance.ts";
import { pssMb } from "./output.ts";
import type { Group } from "./rows.ts";

const sandboxes = 1_000;
const restMs = 5_000;

export const memory: Group = async (say) => {
  const host = await Appliance.begin();
  try {
    await Bun.sleep(restMs);
    const idle = pssMb(host.pid);
    say("idle is measured");
    for (let at = 0; at < sandboxes; at++)
      await host.post("/v1/sandboxes", { name: `box-${at}`, size: "tiny" });
    // What is kept and not what a burst of requests left: a restart reads it all again.
    await host.terminate();
    await host.start();
    for (let at = 0; at < 20; at++) await host.get("/v1/sandboxes?limit=100");
    await Bun.sleep(restMs);
    const full = pssMb(host.pid);
    const group = "memory";
    return [
      { group, what: "serve, idle (Pss)", value: idle, unit: "MB", bar: { atMost: 90 } },
      {
        group,
        what: `serve, ${sandboxes} sandboxes on record (Pss)`,
        value: full,
        unit: "MB",
        bar: { atMost: 130 },
      },
    ];
  } finally {
    await host.end();
  }
};
