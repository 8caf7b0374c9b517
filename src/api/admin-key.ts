/**
 * The admin key of a fresh installation, kept in one file that only its owner may read. Deleting
 * the file is safe: the next start makes another key, and earlier ones stay valid until revoked.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { makeApiKey } from "./api-keys.ts";
import { hashSecret } from "./auth.ts";
import type { ApiPorts } from "./ports.ts";
import { findApiKey } from "./store.ts";

/** Makes a key where the file is missing or names one that this database does not know. */
export async function ensureAdminKey(ports: ApiPorts, path: string): Promise<void> {
  const kept = existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  if (kept !== "" && (await findApiKey(ports.db.read, hashSecret(kept)))) return;
  const wanted = { name: "admin", scope: "admin" } as const;
  const { secret } = await ports.db.write((tx) => makeApiKey(tx, ports, wanted));
  writeFileSync(`${path}.new`, `${secret}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
