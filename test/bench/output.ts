/** 200 MB of a command's output until all of it is durable, against the raw port of the same VM. */
import { createWriteStream, fsyncSync, openSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Group, inPairs, median, timed } from "./rows.ts";
import { BenchVm } from "./vm.ts";

const megabytes = 200;
const pieceBytes = 1_000_000;
const bytes = megabytes * pieceBytes;
const pairs = 3;
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
    const { ours, theirs } = await inPairs(
      pairs,
      () =>
        timed(async () => {
          peaks.push(0);
          const wanted = { argv: ["sh", "-c", written] };
          const { id } = await vm.host.post(`/v1/sandboxes/${vm.name}/commands`, wanted);
          const path = `/v1/commands/${id}?wait=20`;
          const ended = await vm.host.until(path, ({ is_final }) => is_final === true, 600_000);
          if (ended.state !== "exited" || ended.output.bytes !== bytes)
            throw new Error(`not all output came: ${JSON.stringify(ended)}`);
        }).then((ms) => {
          say(`to the store: ${(bytes / ms / 1000).toFixed(1)} MB/s`);
          return ms;
        }),
      () =>
        timed(async () => {
          const received = receive(raw.socket);
          await vm.sh(`${written} >${raw.device}`);
          await received;
        }).then((ms) => {
          say(`raw port: ${(bytes / ms / 1000).toFixed(1)} MB/s`);
          return ms;
        }),
    );
    clearInterval(watch);
    const [a, b] = [median(ours), median(theirs)];
    const group = "output";
    return [
      { group, what: "output to the store", value: bytes / a / 1000, unit: "MB/s" },
      { group, what: "raw port to a file", value: bytes / b / 1000, unit: "MB/s" },
      { group, what: "store / raw", value: b / a, unit: "x", bar: { atLeast: 0.7 } },
      { group, what: "serve at its peak (Pss)", value: Math.max(...peaks), unit: "MB" },
      {
        group,
        what: "serve's peak, growth from the first 200 MB to the last",
        value: (peaks.at(-1) ?? 0) - (peaks[0] ?? 0),
        unit: "MB",
        bar: { atMost: growthMbMax },
      },
    ];
  } finally {
    await vm.host.end();
  }
};

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

/** Proportional set size: smaps_rollup in proc(5). */
export function pssMb(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1]) / 1024;
}
