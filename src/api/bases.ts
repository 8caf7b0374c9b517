/** Bases over HTTP, and which one a new sandbox starts from. */
import { z } from "@hono/zod-openapi";
import { Fault } from "../core/fault.ts";
import type { Base, Images } from "../images/images.ts";
import type { ApiPorts } from "./ports.ts";
import { makeApp, reading } from "./routes.ts";
import { json, strict, timeOf, timeSchema } from "./schemas.ts";

const baseSchema = z
  .object({
    digest: z.string(),
    name: z.string(),
    size_bytes: z.int(),
    built_at: timeSchema,
    is_default: z.boolean(),
  })
  .openapi("Base");

type Choosing = Pick<ApiPorts, "defaultBase"> & { readonly images: Pick<Images, "bases"> };

/**
 * By digest, or the newest of that name; without either the default base.
 * @throws Fault `invalid` no such base; `unavailable` the default one is not built.
 */
export async function chooseBase(ports: Choosing, wanted?: string): Promise<Base> {
  const bases = await ports.images.bases();
  const found = wanted === undefined ? defaultOf(ports, bases) : named(bases, wanted);
  if (found) return found;
  if (wanted === undefined)
    throw new Fault("unavailable", `the base "${ports.defaultBase ?? "default"}" is not built`, {
      code: "base_missing",
      hint: "holdfast images build",
    });
  throw new Fault("invalid", `no base "${wanted}"`, {
    code: "unknown_base",
    hint: `choose one of: ${[...new Set(bases.map(({ name }) => name))].join(", ") || "(none is built)"}`,
  });
}

/** Fixed by the settings: never whatever happened to be built last under another name. */
function defaultOf({ defaultBase }: Choosing, bases: readonly Base[]): Base | undefined {
  return defaultBase === undefined ? bases[0] : named(bases, defaultBase);
}

function named(bases: readonly Base[], wanted: string): Base | undefined {
  return bases.find(({ digest, name }) => digest === wanted || name === wanted);
}

const listBases = reading({
  method: "get",
  path: "/v1/bases",
  operationId: "listBases",
  summary: "List the bases on this host, newest first",
  request: { query: strict({}) },
  responses: {
    200: json(z.object({ data: z.array(baseSchema), next_cursor: z.null() }), "All of them"),
  },
});

export const baseRoutes = (ports: ApiPorts) =>
  makeApp().openapi(listBases, async (c) => {
    const bases = await ports.images.bases();
    const chosen = defaultOf(ports, bases);
    const data = bases.map((base) => ({
      digest: base.digest,
      name: base.name,
      size_bytes: base.sizeBytes,
      built_at: timeOf(base.builtAtMs),
      is_default: base.digest === chosen?.digest,
    }));
    return c.json({ data, next_cursor: null }, 200);
  });
