/**
 * better-sqlite3 itself: opened with the settings durability rests on, its statements kept, its
 * errors translated. Imported only when a database is opened, so that the CLI loads none of it.
 */
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { SqliteDatabase } from "kysely";
import { Fault } from "../core/fault.ts";
import { KiB, MiB } from "../core/units.ts";

/** The part of better-sqlite3 that is used. */
export interface Sqlite {
  prepare(sql: string): Statement;
  exec(sql: string): unknown;
  pragma(text: string, options?: { simple: boolean }): unknown;
  transaction(work: () => void): () => void;
  serialize(): Uint8Array;
  close(): void;
}

interface Statement {
  readonly reader: boolean;
  all(parameters: readonly unknown[]): unknown[];
  run(parameters: readonly unknown[]): { changes: number; lastInsertRowid: number | bigint };
  iterate(parameters: readonly unknown[]): IterableIterator<unknown>;
}

const statementsMax = 500;
const busyTimeoutMs = 5_000;
/** Holds the indexes of some ten thousand commands; the default of 2 MiB reads them again and again. */
const cacheKiB = 16 * 1024;

export interface Pages {
  /** Of a database that is made now; large ones suit large rows. */
  pageBytes: number;
  /** "later": a commit is durable only once `laterSync` returned; the event loop goes on meanwhile. */
  sync: "at commit" | "later";
  /** Of log before it is merged: a page that many commits change is written to the database once. */
  logBytes: number;
}
const pagesDefault: Pages = { pageBytes: 4 * KiB, logBytes: 16 * MiB, sync: "at commit" };

/**
 * @param path a file, or ":memory:".
 * @throws Fault `broken` not a database; `unavailable` not openable.
 */
export async function openFile(path: string, pages = pagesDefault): Promise<Sqlite> {
  const Better = await load();
  try {
    const sqlite = new Better(path);
    sqlite.pragma(`page_size = ${pages.pageBytes}`);
    sqlite.pragma("journal_mode = wal");
    // NORMAL syncs the log only before it is merged into the database (sqlite.org/wal.html).
    sqlite.pragma(`synchronous = ${pages.sync === "later" ? "normal" : "full"}`);
    sqlite.pragma("foreign_keys = on");
    sqlite.pragma(`busy_timeout = ${busyTimeoutMs}`);
    sqlite.pragma(`cache_size = -${cacheKiB}`);
    sqlite.pragma(`wal_autocheckpoint = ${pages.logBytes / pages.pageBytes}`);
    return sqlite;
  } catch (error) {
    throw faultOf(error);
  }
}

/**
 * For `Opening.settle` of a database opened with `sync: "later"`: all of its log reaches the disk. A
 * kernel reports a failure once and then forgets it, so after one nothing more is called durable.
 * @throws Fault `unavailable` the disk did not take it, now or before.
 */
export function laterSync(path: string): () => Promise<void> {
  let log: Promise<FileHandle> | undefined;
  let failure: unknown;
  return async () => {
    try {
      if (failure !== undefined) throw failure;
      log ??= openLog(path);
      await (await log).datasync();
    } catch (cause) {
      failure = cause;
      throw new Fault("unavailable", "the output database's disk did not take the write", {
        hint: "look at the machine's disk, then restart Holdfast",
        cause,
      });
    }
  };
}

/** It is there from the first commit on, and stays while the database is open. */
async function openLog(path: string): Promise<FileHandle> {
  const log = await open(`${path}-wal`, "r");
  const directory = await open(dirname(path), "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
  return log;
}

/** A database from the bytes another one had: how a simulated crash keeps only what was committed. */
export async function openBytes(bytes: Uint8Array | undefined): Promise<Sqlite> {
  const Better = await load();
  const sqlite = new Better(bytes === undefined ? ":memory:" : Buffer.from(bytes));
  sqlite.pragma("foreign_keys = on");
  return sqlite;
}

type Constructor = new (source: string | Buffer) => Sqlite;

/** A compiled binary finds the addon only by the path that names its platform. */
async function load(): Promise<Constructor> {
  const module: { default: unknown } =
    process.arch === "arm64"
      ? await import("better-sqlite3/linux-arm64" as string)
      : await import("better-sqlite3/linux-x64");
  return module.default as Constructor;
}

/** Kysely prepares anew for every query; the same text is prepared once here. */
export function cachingStatements(sqlite: Sqlite): SqliteDatabase {
  const statements = new Map<string, Statement>();
  return {
    close: () => sqlite.close(),
    prepare: (text) => {
      let statement = statements.get(text);
      if (statement === undefined) {
        if (statements.size >= statementsMax) statements.clear();
        statement = sqlite.prepare(text);
        statements.set(text, statement);
      }
      return statement;
    },
  } as SqliteDatabase;
}

/** SQLite's result codes (sqlite.org/rescode.html) that are the world's fault and not ours. */
export function faultOf(error: unknown): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const full = { hint: "free space in the data directory; nothing that was accepted is lost" };
  if (code === "SQLITE_FULL")
    return new Fault("full", "the state database's disk is full", { ...full, cause: error });
  if (
    code.startsWith("SQLITE_IOERR") ||
    code.startsWith("SQLITE_BUSY") ||
    code.startsWith("SQLITE_CANTOPEN")
  )
    return new Fault("unavailable", "the state database's disk did not take the write", {
      cause: error,
    });
  if (code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB"))
    return new Fault("broken", "the state database is damaged", {
      hint: "keep the data directory as it is and restore the database from a copy",
      cause: error,
    });
  return error;
}
