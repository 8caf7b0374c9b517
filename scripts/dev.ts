/** `bun run dev`: the API on simulated machines, at the pace of real time. No VM is needed. */
import { serveSimulated } from "../test/api/simulated.ts";

const port = Number(process.argv[2] ?? 8441);
const { url, secret } = await serveSimulated({ port, pace: 1, seed: Date.now() % 1_000_000 });
console.log(`Simulated machines on ${url}; a program's argv says what it does:

  export HOLDFAST_URL=${url} HOLDFAST_API_KEY=${secret}
  bun src/main.ts create demo
  bun src/main.ts exec demo -- program 2000 500 3   # lasts 2 s, writes 500 bytes, exits with 3`);
