import { expect, test } from "bun:test";
import { ask, type TestHost, testHost } from "../../test/api/host.ts";
import { eventsUntil } from "../../test/api/sse.ts";
import { appendOutput } from "../commands/output.ts";
import { moveCommand } from "../commands/store.ts";
import { KiB } from "../core/units.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function hostWithCommand() {
  const host = await testHost();
  const secret = await host.key("operate");
  const body = { argv: ["program"] };
  await ask(host.app, "POST /v1/sandboxes", { secret, body: { name: "web" }, idempotencyKey: "s" });
  const sent = { secret, body, idempotencyKey: "c" };
  const { id } = (await ask(host.app, "POST /v1/sandboxes/web/commands", sent)).body;
  const read = (query = "", headers = {}) =>
    ask(host.app, `GET /v1/commands/${id}/output${query}`, { secret, headers });
  return { ...host, secret, id: id as string, read, write: writer(host, id) };
}

/** Appends pieces, as the guest part would send them. */
function writer({ ports, clock }: TestHost, commandId: string) {
  let offset = 0;
  return async (
    data: Uint8Array,
    stream: "stdout" | "stderr" = "stdout",
    keptBytesMax?: number,
  ) => {
    const chunk = { offset, stream, atMs: clock.now(), data };
    await appendOutput(ports.output, commandId, [chunk], keptBytesMax);
    offset += data.length;
  };
}

async function end({ ports }: TestHost, id: string): Promise<void> {
  const nowMs = ports.clock.now();
  await ports.db.write(async (tx) => {
    await moveCommand(tx, { id, event: "send", reason: "sent", nowMs });
    await moveCommand(tx, {
      id,
      event: "exited",
      reason: "exited",
      nowMs,
      changes: { exit_code: 0 },
    });
  });
}

test("output is read in order with its streams, from where one left off", async () => {
  const { read, write, ...host } = await hostWithCommand();
  await write(bytes("one\n"));
  await write(bytes("two\n"), "stderr");
  const first = (await read()).body;
  expect(
    first.parts.map((part: { stream: string; text: string }) => [part.stream, part.text]),
  ).toEqual([
    ["stdout", "one\n"],
    ["stderr", "two\n"],
  ]);
  expect([first.more, first.complete]).toEqual([false, false]);
  await write(bytes("three\n"));
  await end(host, host.id);
  const second = (await read(`?cursor=${first.cursor}`)).body;
  expect(second.parts.map(({ text }: { text: string }) => text)).toEqual(["three\n"]);
  expect(second.complete).toBe(true);
  const errors = (await read("?stream=stderr")).body;
  expect(errors.parts.map(({ text }: { text: string }) => text)).toEqual(["two\n"]);
});

test("bytes that are not UTF-8 come back exactly, as base64", async () => {
  const { read, write } = await hostWithCommand();
  const data = new Uint8Array([0xff, 0x00, 0x0a, 0xc3]);
  await write(data);
  await write(bytes("\uFEFFmark and \uFFFD"));
  const { parts } = (await read()).body;
  expect(Buffer.from(parts[0].data_base64, "base64")).toEqual(Buffer.from(data));
  expect(parts[1].text).toBe("\uFEFFmark and \uFFFD");
});

test("a small page tells that more is stored", async () => {
  const { read, write } = await hostWithCommand();
  await write(bytes("0123456789"));
  const first = (await read("?limit_bytes=4")).body;
  expect([first.parts[0].text, first.more]).toEqual(["0123", true]);
  const rest = (await read(`?cursor=${first.cursor}`)).body;
  expect([rest.parts[0].text, rest.more]).toEqual(["456789", false]);
});

test("a cursor that was changed, or made for another command, is refused", async () => {
  const { read, write, secret, app } = await hostWithCommand();
  await write(bytes("text"));
  const { cursor } = (await read()).body;
  const other = { secret, body: { argv: ["other"] }, idempotencyKey: "c2" };
  const { id } = (await ask(app, "POST /v1/sandboxes/web/commands", other)).body;
  const forged = [`${cursor}A`, cursor.slice(1), "", "0", Buffer.from("12").toString("base64url")];
  for (const each of forged)
    expect([each, (await read(`?cursor=${each}`)).body.code]).toEqual([each, "invalid_cursor"]);
  const elsewhere = await ask(app, `GET /v1/commands/${id}/output?cursor=${cursor}`, { secret });
  expect([elsewhere.status, elsewhere.body.code]).toEqual([400, "invalid_cursor"]);
});

test("what is over the cap is told as a gap, in every form", async () => {
  const { read, write } = await hostWithCommand();
  const halves = 32 * 1024 * KiB;
  const piece = new Uint8Array(1024 * KiB).fill(120);
  for (let at = 0; at < halves; at += piece.length) await write(piece);
  for (let at = 0; at < 4 * piece.length; at += piece.length) await write(piece);
  // The cap itself, over which only the newest stays beside the head.
  for (let at = 0; at < halves; at += piece.length) await write(piece);
  const gap = { from: halves, to: halves + 4 * piece.length };
  const text = await read("", { accept: "text/plain" });
  expect(text.headers.get("holdfast-output-gap")).toBe(`${gap.from}-${gap.to}`);
  const marker = `\n[holdfast: ${gap.to - gap.from} bytes not kept]\n`;
  expect(text.body.length).toBe(2 * halves + marker.length);
  expect(text.body.slice(halves, halves + marker.length)).toBe(marker);
  for (let cursor = "", at = 0; at < 90; at++) {
    const page = (await read(`?limit_bytes=1000000${cursor}`)).body;
    cursor = `&cursor=${page.cursor}`;
    if (!page.more) break;
    expect([at, page.parts.length > 0]).toEqual([at, true]);
  }
  const raw = await read("", { accept: "application/octet-stream" });
  expect([raw.body.length, raw.headers.get("holdfast-output-gap")]).toEqual([
    2 * halves,
    `${gap.from}-${gap.to}`,
  ]);
}, 30_000);

test("a reader waits for output, and gets it when it comes", async () => {
  const { read, write } = await hostWithCommand();
  const waiting = read("?wait=25");
  await Bun.sleep(5);
  await write(bytes("at last"));
  expect((await waiting).body.parts[0].text).toBe("at last");
});

test("a reader whose time is over gets an empty page", async () => {
  const { read, clock } = await hostWithCommand();
  const waiting = read("?wait=25");
  await Bun.sleep(5);
  clock.pass(25_000);
  expect((await waiting).body).toMatchObject({ parts: [], more: false, complete: false });
});

test("a follower gets output live and the end, and resumes with the last event's id", async () => {
  const { app, id, secret, write, clock, ...host } = await hostWithCommand();
  const follow = (headers: Record<string, string> = {}) =>
    app.request(`/v1/commands/${id}/output`, {
      headers: { authorization: `Bearer ${secret}`, accept: "text/event-stream", ...headers },
    });
  await write(bytes("one\n"));
  const first = await eventsUntil(await follow(), "output");
  expect(first.map(({ event }) => event)).toEqual([undefined, "state", "output"]);
  const following = follow({ "last-event-id": first.at(-1)?.id ?? "" });
  const rest = eventsUntil(await following, "end");
  await Bun.sleep(5);
  await write(bytes("two\n"), "stderr");
  await Bun.sleep(5);
  clock.pass(15_000);
  await end({ ...host, app, clock }, id);
  const events = await rest;
  const output = events.filter(({ event }) => event === "output");
  expect(output.map(({ data }) => JSON.parse(data ?? "").text)).toEqual(["two\n"]);
  expect(JSON.parse(events.at(-1)?.data ?? "")).toMatchObject({ state: "exited", exit_code: 0 });
});

test("raw output is waited for, cut and gone on with by what its headers say", async () => {
  const { read, write, ...host } = await hostWithCommand();
  const accept = { accept: "application/octet-stream" };
  await write(bytes("0123456789"));
  const part = await read("?limit_bytes=4", accept);
  const [complete, cursor] = ["holdfast-output-complete", "holdfast-output-cursor"];
  expect([part.body, part.headers.get(complete)]).toEqual(["0123", "false"]);
  const rest = read(`?wait=25&cursor=${part.headers.get(cursor)}`, accept);
  await Bun.sleep(5);
  await end(host, host.id);
  expect([(await rest).body, (await rest).headers.get(complete)]).toEqual(["456789", "true"]);
});

test("HEAD tells about raw output without sending it", async () => {
  const { app, id, secret, write } = await hostWithCommand();
  await write(bytes("text"));
  const headers = { accept: "text/plain", authorization: `Bearer ${secret}` };
  const answer = await app.request(`/v1/commands/${id}/output`, { method: "HEAD", headers });
  expect([answer.status, await answer.text()]).toEqual([200, ""]);
  expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
});
