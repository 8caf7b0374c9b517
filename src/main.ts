/** argv → command → exit code. Everything else is loaded by the command that needs it. */
import { UsageError } from "./cli/arguments.ts";
import { commands } from "./cli/commands.ts";
import { endWhenMute } from "./cli/mute.ts";

const exitUsage = 2;
const exitBroken = 1;

function help(): string {
  const lines = Object.entries(commands).map(
    ([name, { about }]) => `  ${name.padEnd(11)} ${about}`,
  );
  return `usage: holdfast COMMAND [FLAGS]

${lines.join("\n")}

holdfast COMMAND --help tells its flags and exit codes. Every command takes --json: results, and
also a problem, are then lines of JSON on stdout. HOLDFAST_URL and HOLDFAST_API_KEY say where to
ask and as whom; else ~/.config/holdfast/config.json ({"url", "api_key"}); else this machine's own.
`;
}

async function main([name, ...argv]: readonly string[]): Promise<number> {
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    process.stdout.write(help());
    return name === undefined ? exitUsage : 0;
  }
  const command = await commands[name === "--version" ? "version" : name]?.load();
  if (!command) {
    process.stderr.write(`error: there is no command "${name}"\n\n${help()}`);
    return exitUsage;
  }
  const { whenMute = exitBroken } = command;
  if (whenMute !== "go on") endWhenMute(whenMute);
  try {
    return await command.run(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`error: ${error.message}\n${command.usage}\n`);
    return exitUsage;
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(
    `error: ${error instanceof Error ? (error.stack ?? String(error)) : String(error)}\n`,
  );
  process.exitCode = exitBroken;
}
// What was written to a pipe may still be on its way.
for (const stream of [process.stdout, process.stderr])
  await new Promise((written) => stream.write("", written));
// That it was not taken is told a moment later.
await new Promise((told) => setImmediate(told));
process.exit();
