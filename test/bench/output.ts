/**
 * 200 MB of a command's output until all of it is durable, against the raw port of the same VM. What
 * a program writes leaves it through a pipe, so the raw port has one before it, too; the rate
 * without one is told beside it.
 */
import { createWriteStream, fsyncSync, openSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Group, median, timed } from "./rows.ts";
import { BenchVm } from "./vm.ts";

const megabytes = 200;
const pieceBytes = 1_000_000;
const bytes = megabytes * pieceBytes;
const rounds = 5;
/** Flat: what the first 200 MB needed is what every further 200 MB need. */
const growthMbMax = 20;

export const output: Group = async (say) => {
  const vm = await BenchVm.begin("small");
  try {
    const raw = await vm.addPort("raw");
    // Long writes: what short ones cost the raw port is not what a channel can carry.
    const written = `dd if=/dev/zero bs=${pieceBytes} count=${megabytes} status=none`;
    const peaks: number[] = [];
    const watch = setInterval(() => {
      const last = peaks.length - 1;
      peaks[last] = Math.max(peaks[last] ?? 0, pssMb(vm.host.pid));
    }, 100);
    const store = async () => {
      peaks.push(0);
      const { id } = await vm.host.post(`/v1/sandboxes/${vm.name}/commands`, {
        argv: ["sh", "-c", written],
      });
      const path = `/v1/commands/${id}?wait=20`;
      const ended = await vm.host.until(path, ({ is_final }) => is_final === true, 600_000);
      if (ended.state !== "exited" || ended.output.bytes !== bytes)
        throw new Error(`not all output came: ${JSON.stringify(ended)}`);
    };
    const port = async (line: string) => {
      const received = receive(raw.socket);
      await vm.sh(`${line} >${raw.device}`);
      await received;
    };
    const ways: Readonly<Record<string, () => Promise<void>>> = {
      "to the store": store,
      "raw port": () => port(written),
      "raw port behind a pipe": () => port(`${written} | dd bs=128k status=none`),
    };
    const rates: Record<string, number[]> = {};
    for (let round = 0; round < rounds; round++)
      for (const [what, way] of inTurn(Object.entries(ways), round)) {
        const rate = bytes / (await timed(way)) / 1000;
        rates[what] = [...(rates[what] ?? []), rate];
        say(`${what}: ${rate.toFixed(1)} MB/s`);
      }
    clearInterval(watch);
    const [ours, direct, piped] = Object.keys(ways).map((what) => median(rates[what] ?? []));
    if (!ours || !direct || !piped) throw new Error("nothing was measured");
    const group = "output";
    return [
      { group, what: "output to the store", value: ours, unit: "MB/s" },
      { group, what: "a program's output to the raw port", value: piped, unit: "MB/s" },
      { group, what: "store / raw", value: ours / piped, unit: "x", bar: { atLeast: 0.7 } },
      { group, what: "the raw port without a pipe before it", value: direct, unit: "MB/s" },
      { group, what: "store / raw without a pipe", value: ours / direct, unit: "x" },
      { group, what: "serve at its peak (Pss)", value: Math.max(...peaks), unit: "MB" },
      {
        group,
        what: "serve's peak, from the first two of them to the last two",
        value: mean(peaks.slice(-2)) - mean(peaks.slice(0, 2)),
        unit: "MB",
        bar: { atMost: growthMbMax },
      },
    ];
  } finally {
    await vm.host.end();
  }
};

/** Each round begins with another, so that none always comes after the same. */
const inTurn = <T>(all: readonly T[], round: number): T[] => [
  ...all.slice(round % all.length),
  ...all.slice(0, round % all.length),
];

/** Until all bytes are durable in a file. */
function receive(path: string): Promise<void> {
  const target = join(tmpdir(), `holdfast-raw-${process.pid}`);
  const fd = openSync(target, "w");
  const file = createWriteStream(target, { fd, highWaterMark: 1024 ** 2 });
  const socket = connect({ path });
  let got = 0;
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("data", (piece) => {
      got += piece.length;
      if (!file.write(piece)) {
        socket.pause();
        file.once("drain", () => socket.resume());
      }
      if (got < bytes) return;
      socket.destroy();
      file.write("", () => {
        fsyncSync(fd);
        file.end();
        rmSync(target);
        resolve();
      });
    });
  });
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Proportional set size: smaps_rollup in proc(5). */
export function pssMb(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1]) / 1024;
}
