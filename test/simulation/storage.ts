/** A database whose commits go through the world: they may fail, or be where the appliance dies. */
import type { Sqlite } from "../../src/db/sqlite.ts";

export function withCommits(sqlite: Sqlite, through: (commit: () => void) => void): Sqlite {
  const prepare: Sqlite["prepare"] = (sql) => {
    const statement = sqlite.prepare(sql);
    if (sql !== "commit") return statement;
    return {
      reader: false,
      all: (parameters) => statement.all(parameters),
      iterate: (parameters) => statement.iterate(parameters),
      run: (parameters) => {
        through(() => void statement.run(parameters));
        return { changes: 0, lastInsertRowid: 0 };
      },
    };
  };
  return {
    prepare,
    exec: (sql) => sqlite.exec(sql),
    pragma: (text, options) => sqlite.pragma(text, options),
    transaction: (work) => sqlite.transaction(work),
    serialize: () => sqlite.serialize(),
    close: () => sqlite.close(),
  };
}
