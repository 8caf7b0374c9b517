/**
 * What this deployment does not offer, refused by name. A request that asks for it is never carried
 * out without it.
 */
import { Fault } from "../core/fault.ts";

interface Missing {
  capability: string;
  why: string;
}

const missing = {
  snapshots: { capability: "snapshots", why: "no repository for saves is configured" },
  saves: { capability: "saves", why: "no repository for saves is configured" },
  files: { capability: "files", why: "reading and writing files by the API is not built yet" },
  ports: { capability: "ports", why: "sandboxes have no network here" },
  terminals: { capability: "terminals", why: "terminals are not built yet" },
  connections: { capability: "connections", why: "connections are not built yet" },
  moves: { capability: "moves", why: "this host has no peers" },
  hosts: { capability: "hosts", why: "this host has no peers" },
  webhooks: { capability: "webhooks", why: "webhooks are not built yet" },
  lifetimes: { capability: "lifetimes", why: "stopping by time or idleness is not built yet" },
  recovery: { capability: "recovery", why: "this host has no peers" },
  environment: { capability: "environment", why: "give `env` with each command" },
  gpus: { capability: "gpus", why: "no GPU is configured on this host" },
  storageClasses: { capability: "storage_classes", why: "no storage class is configured" },
  sharedFilesystems: { capability: "shared_filesystems", why: "none is registered" },
  nestedVirtualization: { capability: "nested_virtualization", why: "it is off for every VM" },
  network: { capability: "network", why: "sandboxes have no network here" },
} as const satisfies Record<string, Missing>;

const ofSandbox: Readonly<Record<string, Missing>> = {
  from: missing.snapshots,
  snapshot: missing.snapshots,
  save_interval: missing.saves,
  save_interval_seconds: missing.saves,
  ttl_seconds: missing.lifetimes,
  stop_after_idle_seconds: missing.lifetimes,
  auto_recover: missing.recovery,
  env: missing.environment,
  connections: missing.connections,
  grants: missing.connections,
  gpus: missing.gpus,
  storage_class: missing.storageClasses,
  shared_filesystems: missing.sharedFilesystems,
  nested_virtualization: missing.nestedVirtualization,
  network: missing.network,
  egress: missing.network,
};

/** Fields of a route's body that are known and not offered. */
const fields: Readonly<Record<string, Readonly<Record<string, Missing>>>> = {
  "/v1/sandboxes": ofSandbox,
  "/v1/sandboxes/{id}": ofSandbox,
  "/v1/sandboxes/{id}/start": { from: missing.saves },
  "/v1/sandboxes/{id}/commands": { pty: missing.terminals },
};

/** Routes that are known and not offered, below /v1, as the router writes them. */
export const unsupportedRoutes: Readonly<Record<string, Missing>> = {
  "/sandboxes/:id/snapshots": missing.snapshots,
  "/snapshots/:id?": missing.snapshots,
  "/sandboxes/:id/saves/:save?": missing.saves,
  "/saves/:id?": missing.saves,
  "/sandboxes/:id/files/*": missing.files,
  "/sandboxes/:id/files": missing.files,
  "/sandboxes/:id/export": missing.files,
  "/sandboxes/:id/import": missing.files,
  "/sandboxes/:id/ports/:port?": missing.ports,
  "/sandboxes/:id/terminals/:terminal?": missing.terminals,
  "/sandboxes/:id/grants/:connection?": missing.connections,
  "/connections/*": missing.connections,
  "/connections": missing.connections,
  "/sandboxes/:id/move": missing.moves,
  "/sandboxes/:id/resolve": missing.recovery,
  "/hosts/*": missing.hosts,
  "/hosts": missing.hosts,
  "/webhooks/:id?": missing.webhooks,
};

/** @throws Fault `unsupported` the body asks for what is not offered. */
export function checkOffered(path: string, body: unknown): void {
  const known = fields[path];
  if (!known || typeof body !== "object" || body === null) return;
  for (const field of Object.keys(body)) {
    const what = Object.hasOwn(known, field) ? known[field] : undefined;
    if (what) throw unsupported(what, `\`${field}\` is not offered here: ${what.why}`);
  }
}

export function unsupported({ capability, why }: Missing, message: string): Fault {
  return new Fault("unsupported", message, {
    code: "unsupported_capability",
    hint: "leave it out, or use a deployment that offers it",
    details: { capability, why },
  });
}
