/** Our own stdin, sent on to a command in pieces that are each taken once. */
import { type Client, Refusal } from "./client.ts";

const pieceBytesMax = 128 * 1024;
const fullPauseMs = 200;

export interface Feeding {
  /** The command has ended: nothing more is read. */
  stop: () => void;
}

/** Begins to send; ends at the end of our stdin or when the command takes no more. */
export function feedStdin(client: Client, id: string): Feeding {
  let stopped = false;
  const feed = async (): Promise<void> => {
    let offset = 0;
    for await (const chunk of process.stdin as AsyncIterable<Buffer>)
      for (let at = 0; at < chunk.length && !stopped; at += pieceBytesMax) {
        const data = chunk.subarray(at, at + pieceBytesMax);
        if (!(await sendPiece(client, id, { offset, data, eof: false }))) return;
        offset += data.length;
      }
    if (!stopped) await sendPiece(client, id, { offset, data: Buffer.alloc(0), eof: true });
  };
  void feed();
  return {
    stop: () => {
      stopped = true;
      process.stdin.destroy();
    },
  };
}

interface Piece {
  offset: number;
  data: Buffer;
  eof: boolean;
}

/** Whether the command takes more. A full buffer is waited for. */
async function sendPiece(client: Client, id: string, piece: Piece): Promise<boolean> {
  const path = `/v1/commands/${id}/stdin?offset=${piece.offset}&eof=${piece.eof}`;
  const headers = { "content-type": "application/octet-stream" };
  while (true) {
    try {
      const body = new Uint8Array(piece.data);
      await client.request(path, { method: "POST", headers, body });
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.problem.code !== "stdin_full") return false;
      await Bun.sleep(fullPauseMs);
    }
  }
}
