/** The API's description: OpenAPI 3.1 made from the routes, and two readable forms of it. */
import type { Api, Build } from "./ports.ts";

export interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string }[];
  requestBody?: unknown;
  security?: unknown[];
  "x-scope"?: string;
  responses: Record<string, unknown>;
}

export interface ApiDocument {
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, Operation>>;
  [part: string]: unknown;
}

const about =
  "Runs commands in Linux VMs and does not lose them. Send `Authorization: Bearer hf_…`; every " +
  "change carries an Idempotency-Key: the same key with the same request is answered as before, " +
  "with Idempotent-Replayed: true.";

export function openApiDocument(app: Api, build: Build): ApiDocument {
  const security = { type: "http", scheme: "bearer", description: "An API key, hf_…" } as const;
  const document = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Holdfast", version: build.version, description: about },
  }) as unknown as ApiDocument;
  const parts = document["components"] as Record<string, unknown>;
  parts["securitySchemes"] = { apiKey: security };
  for (const operation of operationsOf(document)) addProblems(operation.operation);
  return document;
}

/** Each route with its method, in the order of the document. */
export function operationsOf(document: ApiDocument) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

function addProblems(operation: Operation): void {
  operation.responses["default"] = {
    description: "A problem (RFC 9457); decide by its `code`",
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
}

export function llmsText(document: ApiDocument): string {
  const routes = operationsOf(document).map(
    ({ path, method, operation }) =>
      `- ${method.toUpperCase()} ${path} (${operation["x-scope"] ?? "no key"}): ${operation.summary}`,
  );
  return [
    "# Holdfast",
    "",
    `> ${about}`,
    "",
    "The whole contract: /openapi.json. Typical use: POST /v1/sandboxes, then POST " +
      "/v1/sandboxes/{name}/commands, then GET /v1/commands/{id}?wait=25 until is_final, and GET " +
      "/v1/commands/{id}/output.",
    "",
    "## Routes",
    "",
    ...routes,
    "",
  ].join("\n");
}

const style =
  "body{font:15px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}" +
  "code{background:#8882;padding:.1em .3em;border-radius:3px}summary{cursor:pointer;padding:.3em 0}" +
  "pre{overflow:auto;background:#8881;padding:1em}:root{color-scheme:light dark}";

/** One page without scripts. */
export function docsPage(document: ApiDocument): string {
  const routes = operationsOf(document).map(
    ({ path, method, operation }) =>
      `<details><summary><code>${method.toUpperCase()} ${escaped(path)}</code> ` +
      `${escaped(operation.summary ?? "")}</summary><p>${escaped(operation.description ?? "")}</p>` +
      `<p>Scope: <code>${escaped(operation["x-scope"] ?? "")}</code></p>` +
      `<pre>${escaped(JSON.stringify(operation, null, 2))}</pre></details>`,
  );
  return (
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast API</title>` +
    `<style>${style}</style><h1>Holdfast API ${escaped(document.info.version)}</h1>` +
    `<p>${escaped(about)}</p><p><a href="openapi.json">openapi.json</a></p>${routes.join("")}</html>`
  );
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
