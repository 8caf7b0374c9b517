import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault } from "../core/fault.ts";
import { type Db, openState } from "./open.ts";
import { laterSync, openBytes, type Sqlite } from "./sqlite.ts";

interface Opened {
  db: Db;
  sqlite: Sqlite;
  committed: string[][];
  /** Lets the writers that wait commit. */
  go: () => void;
  commits: () => number;
  breakCommits: (code: string | undefined) => void;
}

async function opened(): Promise<Opened> {
  const sqlite = await openBytes(undefined);
  const committed: string[][] = [];
  let commits = 0;
  let broken: string | undefined;
  let go = (): void => {};
  const watched: Sqlite = {
    prepare: (sql) => {
      const statement = sqlite.prepare(sql);
      if (sql !== "commit") return statement;
      const run: typeof statement.run = (parameters) => {
        if (broken) throw Object.assign(new Error("no"), { code: broken });
        commits++;
        return statement.run(parameters);
      };
      return {
        reader: false,
        run,
        all: (parameters) => statement.all(parameters),
        iterate: (parameters) => statement.iterate(parameters),
      };
    },
    exec: (sql) => sqlite.exec(sql),
    pragma: (text, options) => sqlite.pragma(text, options),
    transaction: (work) => sqlite.transaction(work),
    serialize: () => sqlite.serialize(),
    close: () => sqlite.close(),
  };
  const db = openState({
    sqlite: watched,
    committed: (topics) => void committed.push([...topics]),
    gather: () =>
      new Promise((resolve) => {
        go = resolve;
      }),
  });
  return {
    db,
    sqlite,
    committed,
    go: () => go(),
    commits: () => commits,
    breakCommits: (code) => {
      broken = code;
    },
  };
}

function insert(db: Db, id: string, fault?: Fault): Promise<string> {
  return db.write(async (tx) => {
    const values = { id, secret: new Uint8Array(1), created_at_ms: 1 };
    await tx.insertInto("host").values(values).execute();
    tx.touch(`host:${id}`);
    if (fault) throw fault;
    return id;
  });
}

const hosts = (sqlite: Sqlite): unknown[] => sqlite.prepare("select id from host").all([]);

test("writers that wait share one commit, and hear of it only once it is durable", async () => {
  const { db, sqlite, go, commits, committed } = await opened();
  let told = 0;
  const writes = ["one", "two", "three"].map((id) =>
    insert(db, id).then((value) => {
      told++;
      // What is told to a writer is in the bytes another opening would find.
      expect(JSON.stringify(hosts(sqlite))).toContain(value);
      return value;
    }),
  );
  await new Promise((turn) => setImmediate(turn));
  expect([told, commits()]).toEqual([0, 0]);
  go();
  expect(await Promise.all(writes)).toEqual(["one", "two", "three"]);
  expect(commits()).toBe(1);
  expect(committed).toEqual([["host:one", "host:two", "host:three"]]);
});

test("a fault undoes its own writes and nobody else's", async () => {
  const { db, sqlite, go } = await opened();
  const first = insert(db, "first");
  const refused = insert(db, "refused", new Fault("quota", "no room"));
  const last = insert(db, "last");
  go();
  expect(await first).toBe("first");
  expect(refused).rejects.toThrow("no room");
  expect(await last).toBe("last");
  expect(hosts(sqlite)).toEqual([{ id: "first" }, { id: "last" }]);
});

test("a commit that fails is told to all its writers, and later ones go on", async () => {
  const { db, sqlite, go, breakCommits, committed } = await opened();
  breakCommits("SQLITE_FULL");
  const lost = [insert(db, "one"), insert(db, "two")].map((write) =>
    write.catch((error: unknown) => error),
  );
  go();
  for (const error of await Promise.all(lost)) expect(error).toMatchObject({ kind: "full" });
  expect(committed).toEqual([]);
  expect(hosts(sqlite)).toEqual([]);
  breakCommits(undefined);
  const kept = insert(db, "three");
  go();
  expect(await kept).toBe("three");
  expect(hosts(sqlite)).toEqual([{ id: "three" }]);
});

test("a mistake of ours undoes the whole commit and is told as it is", async () => {
  const { db, sqlite, go } = await opened();
  const mistaken = db
    .write(() => Promise.reject(new TypeError("ours")))
    .catch((error: unknown) => error);
  const beside = insert(db, "beside").catch((error: unknown) => error);
  go();
  expect(await mistaken).toBeInstanceOf(TypeError);
  expect(await beside).toBeInstanceOf(TypeError);
  expect(hosts(sqlite)).toEqual([]);
});

test("nobody is told of a commit, and nobody reads it, before it is settled", async () => {
  let settle = (): void => {};
  const db = openState({
    sqlite: await openBytes(undefined),
    committed: () => told.push("topics"),
    gather: async () => {},
    settle: () =>
      new Promise((resolve) => {
        settle = resolve;
      }),
  });
  const told: string[] = [];
  void insert(db, "one").then(() => told.push("writer"));
  await Bun.sleep(5);
  void db.read
    .selectFrom("host")
    .select("id")
    .execute()
    .then((rows) => told.push(`reader of ${rows.length}`));
  await Bun.sleep(5);
  expect(told).toEqual([]);
  settle();
  while (told.length < 3) await Bun.sleep(1);
  expect(told.toSorted()).toEqual(["reader of 1", "topics", "writer"]);
});

test("after a sync that failed nothing is called durable any more", async () => {
  const directory = mkdtempSync(join(tmpdir(), "later-"));
  const sync = laterSync(join(directory, "state.db"));
  const refusal = () => sync().catch((error: unknown) => error);
  expect(await refusal()).toMatchObject({ kind: "unavailable" });
  writeFileSync(join(directory, "state.db-wal"), "");
  expect(await refusal()).toMatchObject({ kind: "unavailable" });
  rmSync(directory, { recursive: true });
});

test("a database of a newer version is refused, and one of this version opens again", async () => {
  const { sqlite } = await opened();
  const opening = { committed: () => {}, gather: async () => {} };
  openState({ sqlite: await openBytes(sqlite.serialize()), ...opening });
  sqlite.pragma("user_version = 99");
  const newer = await openBytes(sqlite.serialize());
  expect(() => openState({ sqlite: newer, ...opening })).toThrow("written by a newer Holdfast");
});
