/** All sandboxes that fit a filter, page by page. */
import type { SandboxView } from "../api/sandbox-view.ts";
import type { Client } from "./client.ts";

/** Newest first. */
export async function* allSandboxes(
  client: Client,
  filter: Readonly<Record<string, string>> = {},
): AsyncGenerator<SandboxView> {
  let cursor: string | null | undefined;
  do {
    const query = { limit: "100", ...filter, ...(cursor && { cursor }) };
    const page = await (await client.sandboxes.$get({ query })).json();
    yield* page.data;
    cursor = page.next_cursor;
  } while (cursor !== null);
}
