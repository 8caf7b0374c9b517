/**
 * SQLite for Kysely, whose commits are settled before its one connection is anybody else's: what was
 * committed and is not durable yet is read by nobody.
 */
import {
  type DatabaseConnection,
  type Driver,
  type SqliteDatabase,
  SqliteDialect,
  SqliteDriver,
} from "kysely";

export type Settle = () => Promise<void>;

export class SettlingDialect extends SqliteDialect {
  readonly #database: SqliteDatabase;
  readonly #settle: Settle;

  /** @param settle never fails: whoever gives it remembers what went wrong. */
  constructor(database: SqliteDatabase, settle: Settle) {
    super({ database });
    this.#database = database;
    this.#settle = settle;
  }

  override createDriver(): Driver {
    return new SettlingDriver(this.#database, this.#settle);
  }
}

class SettlingDriver extends SqliteDriver {
  readonly #settle: Settle;

  constructor(database: SqliteDatabase, settle: Settle) {
    super({ database });
    this.#settle = settle;
  }

  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await super.commitTransaction(connection);
    await this.#settle();
  }
}
