/** Numbers for Prometheus, in its text format 0.0.4. Labels never carry a name that a user chose. */

import { liveStates } from "../commands/command.ts";
import type { Reader } from "../db/open.ts";
import { states } from "./command-view.ts";
import type { ApiPorts } from "./ports.ts";
import { phases } from "./sandbox-view.ts";

/** Requests answered, counted in memory since this process began. */
export class RequestCounts {
  readonly #byLabels = new Map<string, number>();

  add(request: { method: string; route: string; status: number }): void {
    const { method, route, status } = request;
    const labels = `method="${method}",route="${route}",status="${status}"`;
    this.#byLabels.set(labels, (this.#byLabels.get(labels) ?? 0) + 1);
  }

  get lines(): string[] {
    return [...this.#byLabels].map(([labels, n]) => `holdfast_http_requests_total{${labels}} ${n}`);
  }
}

export async function metricsText(ports: ApiPorts, requests: RequestCounts): Promise<string> {
  const { version, commit } = ports.build;
  const sandboxes = await countBy(ports.db.read, "sandboxes", "phase");
  const commands = await countBy(ports.db.read, "commands", "state");
  const running = liveStates.reduce((sum, state) => sum + (commands.get(state) ?? 0), 0);
  return [
    ...family("holdfast_up", "gauge", "Whether Holdfast answers.", ["holdfast_up 1"]),
    ...family("holdfast_build_info", "gauge", "Which build this is.", [
      `holdfast_build_info{version="${version}",commit="${commit}"} 1`,
    ]),
    ...family("holdfast_sandboxes", "gauge", "Sandboxes by observed phase.", [
      ...phases.map((phase) => `holdfast_sandboxes{phase="${phase}"} ${sandboxes.get(phase) ?? 0}`),
    ]),
    ...family("holdfast_commands", "gauge", "Commands on record by state.", [
      ...states.map((state) => `holdfast_commands{state="${state}"} ${commands.get(state) ?? 0}`),
    ]),
    ...family("holdfast_commands_running", "gauge", "Commands that have not ended.", [
      `holdfast_commands_running ${running}`,
    ]),
    ...family("holdfast_http_requests_total", "counter", "Requests answered.", requests.lines),
    "",
  ].join("\n");
}

function family(name: string, type: string, help: string, lines: readonly string[]): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}

async function countBy(
  read: Reader,
  table: "sandboxes" | "commands",
  column: "phase" | "state",
): Promise<Map<string, number>> {
  const rows = await read
    .selectFrom(table)
    .select((row) => [row.ref(column).as("value"), row.fn.countAll<number>().as("count")])
    .groupBy(column)
    .execute();
  return new Map(rows.map(({ value, count }) => [String(value), count]));
}
