/**
 * The one place that opens SQLite. Writers queue up and share a commit, so that one fsync serves
 * all that wait; each still stands or falls alone. Never use `read` inside a write: one connection
 * serves both, and it would wait for itself.
 */
import { Kysely, type SqliteDatabase, type Transaction } from "kysely";
import { Fault } from "../core/fault.ts";
import { migration0001 } from "./migrations/0001.ts";
import { migration0002 } from "./migrations/0002.ts";
import { outputMigration0001 } from "./migrations/output0001.ts";
import type { Prepared } from "./prepared.ts";
import type { OutputSchema, Schema } from "./schema.ts";
import { SettlingDialect } from "./settling.ts";
import { cachingStatements, faultOf, type Sqlite } from "./sqlite.ts";

/** Runs queries that were compiled before; what only writes returns no rows. */
export interface Running {
  all<Parameters, Row>(
    query: Prepared<Parameters, Row>,
    parameters: NoInfer<Parameters>,
  ): Promise<Row[]>;
}

/** The database as a workflow step sees it: look, do not touch. */
export type Reading<S> = Pick<Kysely<S>, "selectFrom" | "with"> & Running;
export type Reader = Reading<Schema>;

export type Writing<S> = Transaction<S> &
  Running & {
    /** Signals this topic once the write is committed. */
    touch(topic: string): void;
  };
export type Tx = Writing<Schema>;

export interface Database<S> {
  readonly read: Reading<S>;
  /**
   * Runs `work` in a transaction and returns once it is durable. A Fault it throws undoes its own
   * writes only. `work` must not wait for anything but the database.
   * @throws Fault `full` the disk is full; `unavailable` the disk did not take it.
   */
  write<T>(work: (tx: Writing<S>) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}
export type Db = Database<Schema>;
export type OutputDb = Database<OutputSchema>;

export interface Opening {
  sqlite: Sqlite;
  /** Called with the topics of a commit. */
  committed: (topics: ReadonlySet<string>) => void;
  /** A short pause in which further writers may join a commit. */
  gather: () => Promise<void>;
  /** Makes durable what a commit left to be made so (`laterSync`). Nobody is told before. */
  settle?: () => Promise<void>;
}

export const openState = (opening: Opening): Db =>
  open<Schema>(opening, [migration0001, migration0002]);
export const openOutput = (opening: Opening): OutputDb =>
  open<OutputSchema>(opening, [outputMigration0001]);

/** Requests that arrived together need a few turns of the event loop until all of them write. */
const gatheringTurns = 3;

/** For `Opening.gather`: well under a millisecond where nothing else is to be done. */
export async function gatherTurns(): Promise<void> {
  for (let turn = 0; turn < gatheringTurns; turn++)
    await new Promise((resolve) => setImmediate(resolve));
}

interface Job<S> {
  work: (tx: Writing<S>) => Promise<unknown>;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

function open<S>(opening: Opening, migrations: readonly string[]): Database<S> {
  migrate(opening.sqlite, migrations);
  const database = cachingStatements(opening.sqlite);
  let failure: unknown;
  const settle = async (): Promise<void> => {
    failure = await opening.settle?.().then(
      () => undefined,
      (error: unknown) => error,
    );
  };
  const settled = (): void => {
    if (failure !== undefined) throw failure;
  };
  const kysely = new Kysely<S>({ dialect: new SettlingDialect(database, settle) });
  const run = runnerOf(database);
  const queue: Job<S>[] = [];
  let flushing = false;
  let writing: Promise<void> | undefined;
  const flush = async (): Promise<void> => {
    while (queue.length > 0) {
      await opening.gather();
      writing = commit({ kysely, run }, queue.splice(0), { ...opening, settled });
      await writing;
      writing = undefined;
    }
    flushing = false;
  };
  const all: Running["all"] = async (query, parameters) => {
    // What is not committed yet was not said yet.
    while (writing) await writing;
    return run(query, parameters);
  };
  return {
    read: Object.assign(kysely, { all }),
    write: (work) =>
      new Promise((resolve, reject) => {
        queue.push({ work, resolve, reject });
        if (flushing) return;
        flushing = true;
        void flush();
      }),
    close: () => kysely.destroy(),
  };
}

/** Tells the writers only after the commit: what was promised is then on the disk. */
async function commit<S>(
  { kysely, run }: { kysely: Kysely<S>; run: Run },
  jobs: Job<S>[],
  { committed, settled }: { committed: Opening["committed"]; settled: () => void },
): Promise<void> {
  const touched = new Set<string>();
  const tell: (() => void)[] = [];
  try {
    await kysely.transaction().execute(async (transaction) => {
      const all: Running["all"] = async (query, parameters) => run(query, parameters);
      const touch = (topic: string): void => void touched.add(topic);
      const tx = Object.assign(transaction, { touch, all });
      for (const job of jobs) tell.push(await runJob(tx, job));
    });
    settled();
  } catch (error) {
    for (const { reject } of jobs) reject(faultOf(error));
    return;
  }
  for (const each of tell) each();
  committed(touched);
}

async function runJob<S>(tx: Writing<S>, job: Job<S>): Promise<() => void> {
  await tx.all(begin, {});
  try {
    const value = await job.work(tx);
    await tx.all(release, {});
    return () => job.resolve(value as never);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    await tx.all(undo, {});
    await tx.all(release, {});
    return () => job.reject(error);
  }
}

const plain = (text: string): Prepared<object, never> => ({ text, valuesOf: () => [] });
const begin = plain("savepoint job");
const release = plain("release job");
const undo = plain("rollback to job");

type Run = <Parameters, Row>(query: Prepared<Parameters, Row>, parameters: Parameters) => Row[];

function runnerOf(database: SqliteDatabase): Run {
  return ({ text, valuesOf }, parameters) => {
    const statement = database.prepare(text);
    const values = valuesOf(parameters);
    if (statement.reader) return statement.all(values) as never[];
    statement.run(values);
    return [];
  };
}

function migrate(sqlite: Sqlite, migrations: readonly string[]): void {
  const version = sqlite.pragma("user_version", { simple: true }) as number;
  if (version > migrations.length)
    throw new Fault("broken", "the database was written by a newer Holdfast", {
      hint: "start the version that wrote it, or a newer one",
    });
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue;
    sqlite.transaction(() => {
      sqlite.exec(migration);
      sqlite.pragma(`user_version = ${index + 1}`);
    })();
  }
}
