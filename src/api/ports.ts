/** What the API needs: the nouns' ports, and who and what this host is. */
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { CommandPorts } from "../commands/ports.ts";
import type { Host } from "../hosts/host.ts";
import type { Patience } from "./patience.ts";
import type { ApiKey } from "./store.ts";

export interface Build {
  readonly version: string;
  readonly commit: string;
}

export interface ApiPorts extends CommandPorts {
  readonly host: Host;
  readonly build: Build;
  /** The name of the base that sandboxes start from; undefined = the newest. */
  readonly defaultBase: string | undefined;
  /** A mistake of ours came up: whoever runs the process ends it, and its supervisor restarts it. */
  readonly onBug: (error: unknown) => void;
}

/** What the middleware leaves for the handlers of one request. */
export interface ApiEnv {
  Variables: {
    requestId: string;
    apiKey: ApiKey;
    patience: Patience;
    /** The parsed JSON body, before any default was filled in. */
    json: unknown;
  };
}
export type Api = OpenAPIHono<ApiEnv>;
export type ApiContext = Context<ApiEnv>;
