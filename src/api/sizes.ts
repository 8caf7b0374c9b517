/** Sizes over HTTP: what a sandbox can be made as. */
import { z } from "@hono/zod-openapi";
import { defaultSizeName } from "../sandboxes/size.ts";
import type { ApiPorts } from "./ports.ts";
import { makeApp, reading } from "./routes.ts";
import { json, strict } from "./schemas.ts";

const sizeSchema = z
  .object({
    name: z.string(),
    vcpus: z.int(),
    memory_bytes: z.int(),
    disk_bytes: z.int(),
    is_default: z.boolean(),
  })
  .openapi("Size");

const listSizes = reading({
  method: "get",
  path: "/v1/sizes",
  operationId: "listSizes",
  summary: "List the sizes a sandbox can have",
  request: { query: strict({}) },
  responses: {
    200: json(z.object({ data: z.array(sizeSchema), next_cursor: z.null() }), "All of them"),
  },
});

export const sizeRoutes = ({ sizes }: ApiPorts) => {
  const usual = sizes.find(({ name }) => name === defaultSizeName) ?? sizes[0];
  return makeApp().openapi(listSizes, (c) => {
    const data = sizes.map((size) => ({
      name: size.name,
      vcpus: size.vcpus,
      memory_bytes: size.memoryBytes,
      disk_bytes: size.diskBytes,
      is_default: size === usual,
    }));
    return c.json({ data, next_cursor: null }, 200);
  });
};
