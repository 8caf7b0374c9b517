/**
 * The operator's settings. `settings.example.toml` is the documentation and the defaults at once;
 * what it does not name is refused.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import example from "../../settings.example.toml" with { type: "text" };
import { Fault } from "../core/fault.ts";

const count = z.int().min(1).max(1_000_000);

const sizeSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  vcpus: z.int().min(1).max(256),
  memory_mib: z.int().min(128).max(4_194_304),
  disk_gib: z.int().min(1).max(65_536),
});

const settingsSchema = z.strictObject({
  default_base: z.string().min(1).optional(),
  listen: z.strictObject({
    address: z.string().min(1),
    port: z.int().min(1).max(65_535),
    behind_proxy: z.boolean(),
  }),
  limits: z.strictObject({
    sandboxes_total: count,
    sandboxes_running: count,
    vcpus_running: count,
    memory_running_gib: count,
    disk_total_gib: count,
    host_memory_gib: z.number().min(0),
  }),
  // Idempotency keys are promised for 48 hours at least, and a command's leaves with its record.
  records: z.strictObject({ kept_days: z.int().min(3).max(36_500) }),
  sizes: z.array(sizeSchema).min(1),
});
export type Settings = z.infer<typeof settingsSchema>;

/** The example, as it is written to a fresh data directory. */
export const exampleText: string = example;

/**
 * The defaults, with what this text sets put over them.
 * @throws Fault `invalid` naming the setting.
 */
export function parseSettings(text: string, where: string): Settings {
  const defaults = Bun.TOML.parse(example) as Record<string, unknown>;
  const merged = { ...defaults, ...parseToml(text, where) };
  for (const section of ["listen", "limits", "records"])
    merged[section] = { ...(defaults[section] as object), ...(merged[section] as object) };
  const { success, data, error } = settingsSchema.safeParse(merged);
  if (success) return data;
  const [issue] = error.issues;
  throw new Fault(
    "invalid",
    `${where}: ${[issue?.path.join("."), issue?.message].filter(Boolean).join(": ")}`,
    {
      code: "invalid_settings",
      hint: "settings.example.toml shows every setting",
    },
  );
}

/** A file that is not there sets nothing. */
export function readSettings(path: string): Settings {
  try {
    return parseSettings(readFileSync(path, "utf8"), path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      return parseSettings("", path);
    throw error;
  }
}

function parseToml(text: string, where: string): Record<string, unknown> {
  try {
    return Bun.TOML.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new Fault("invalid", `${where} is not TOML`, { code: "invalid_settings", cause: error });
  }
}
