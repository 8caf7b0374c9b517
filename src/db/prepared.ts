/**
 * Queries that are built and compiled once, for the paths that every request takes: building one
 * anew costs several times what SQLite needs to run it. Holds texts only, no connection.
 */
import {
  type Compilable,
  DummyDriver,
  Kysely,
  type QueryCreator,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { assert } from "../core/assert.ts";
import type { OutputSchema, Schema } from "./schema.ts";

/** SQL with the names of its parameters in their order. `Row` is what each row is. */
export interface Prepared<Parameters, Row> {
  readonly text: string;
  readonly valuesOf: (parameters: Parameters) => unknown[];
  /** Never there: it carries the type. */
  readonly row?: Row;
}

type Build<S, Parameters, Row> = (db: QueryCreator<S>, parameters: Parameters) => Compilable<Row>;

/**
 * A query of the state database. `build` is called once, with marks in place of the parameters: it
 * may put them into the query, and must not look at them.
 */
export const stateQuery = <Parameters extends object, Row>(
  build: Build<Schema, Parameters, Row>,
): Prepared<Parameters, Row> => prepare(build);

/** The same for the database of output. */
export const outputQuery = <Parameters extends object, Row>(
  build: Build<OutputSchema, Parameters, Row>,
): Prepared<Parameters, Row> => prepare(build);

class Mark {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

function prepare<S, Parameters extends object, Row>(
  build: Build<S, Parameters, Row>,
): Prepared<Parameters, Row> {
  const marks = new Proxy({}, { get: (_, name) => new Mark(String(name)) }) as Parameters;
  const { sql, parameters } = build(withoutConnection<S>(), marks).compile();
  const valuesOf = (given: Parameters): unknown[] =>
    parameters.map((value) => {
      if (!(value instanceof Mark)) return value;
      assert(value.name in given, `the query needs "${value.name}"`);
      return given[value.name as keyof Parameters];
    });
  return { text: sql, valuesOf };
}

const withoutConnection = <S>(): Kysely<S> =>
  new Kysely<S>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  });
