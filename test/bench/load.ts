/**
 * The cheapest HTTP client there can be, so that the server is what is measured: keep-alive
 * connections, each with one request at a time.
 */
import { connect, type Socket } from "node:net";

export interface Load {
  readonly port: number;
  readonly connections: number;
  readonly ms: number;
  /** The whole request, number `n` of all. */
  readonly request: (n: number) => string;
}

/** Requests answered with 2xx per second. @throws Error anything else was answered. */
export async function requestsPerSecond(load: Load): Promise<number> {
  let [sent, answered, going] = [0, 0, true];
  const began = performance.now();
  const run = (socket: Socket): Promise<void> =>
    new Promise((resolve, reject) => {
      let text = "";
      const next = (): void => {
        if (going) socket.write(load.request(sent++));
        else {
          socket.destroy();
          resolve();
        }
      };
      socket.on("error", reject);
      socket.on("connect", next);
      socket.on("data", (bytes) => {
        text += bytes.toString("latin1");
        const head = text.indexOf("\r\n\r\n");
        if (head < 0) return;
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (text.length < head + 4 + length) return;
        if (!text.startsWith("HTTP/1.1 2")) reject(new Error(text.slice(0, 600)));
        text = "";
        answered++;
        next();
      });
    });
  const all = Array.from({ length: load.connections }, () => run(connect(load.port, "127.0.0.1")));
  await Promise.race([Bun.sleep(load.ms), Promise.all(all)]);
  going = false;
  const rate = (answered / (performance.now() - began)) * 1000;
  await Promise.all(all);
  return rate;
}
