/** Twenty VMs on one host: what they cost `serve`, and what a restart of it disturbs. */
import { Appliance } from "../machine/appliance.ts";
import { pssMb } from "./output.ts";
import type { Group } from "./rows.ts";

const count = 20;
const bootsAtOnce = 2;
const probeMs = 5;
const lines = 12;

export const fleet: Group = async (say) => {
  const host = await Appliance.begin();
  try {
    const names = Array.from({ length: count }, (_, at) => `vm${at}`);
    for (let at = 0; at < count; at += bootsAtOnce) {
      const some = names.slice(at, at + bootsAtOnce);
      await Promise.all(some.map((name) => host.say("create", name, "--size", "tiny", "--start")));
      for (const name of some)
        await host.until(`/v1/sandboxes/${name}`, ({ phase }) => phase === "running", 300_000);
      say(`${at + some.length} of ${count} VMs run`);
    }
    await Bun.sleep(5_000);
    const mb = pssMb(host.pid);
    // Seldom enough that twenty emulated guests leave the host's processors some room.
    const script = `i=0; while [ $i -lt ${lines} ]; do echo $i; i=$((i+1)); sleep 4; done`;
    const ids = await Promise.all(
      names.map((name) => host.say("exec", "-d", name, "--", "sh", "-c", script)),
    );
    for (const id of ids)
      await host.until(`/v1/commands/${id}`, ({ state }) => state === "running");
    const gapMs = await restartWatched(host);
    say(`restart: the API was away for ${gapMs.toFixed(0)} ms`);
    let disturbed = 0;
    const wanted = Array.from({ length: lines }, (_, at) => `${at}\n`).join("");
    for (const id of ids) {
      const logs = await host.run("logs", "-f", id);
      if (logs.code !== 0 || logs.stdout.toString() !== wanted) disturbed++;
    }
    const group = "fleet";
    return [
      {
        group,
        what: `serve with ${count} VMs running (Pss)`,
        value: mb,
        unit: "MB",
        bar: { atMost: 200 },
      },
      {
        group,
        what: "restart: the API is away",
        value: gapMs / 1000,
        unit: "s",
        bar: { atMost: 1 },
      },
      {
        group,
        what: "restart: commands disturbed",
        value: disturbed,
        unit: "",
        bar: { atMost: 0 },
      },
    ];
  } finally {
    await host.end();
  }
};

/** As an upgrade does it: told to end, and started again at once. Returns the longest silence, ms. */
async function restartWatched(host: Appliance): Promise<number> {
  let [lastOk, longest, going] = [performance.now(), 0, true];
  const watching = (async () => {
    while (going) {
      const isOk = await host.isHealthy();
      const now = performance.now();
      if (isOk) {
        longest = Math.max(longest, now - lastOk);
        lastOk = now;
      }
      await Bun.sleep(probeMs);
    }
  })();
  await Bun.sleep(500);
  longest = 0;
  await host.terminate();
  await host.start();
  await Bun.sleep(1_000);
  going = false;
  await watching;
  return longest;
}
