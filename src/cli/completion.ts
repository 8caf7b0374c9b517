/** `holdfast completion`: a script that completes commands and sandbox names in a shell. */
import { UsageError } from "./arguments.ts";
import { type CliCommand, print } from "./command.ts";

const usage = `usage: holdfast completion bash|zsh|fish

  bash: source <(holdfast completion bash)
  zsh:  source <(holdfast completion zsh)
  fish: holdfast completion fish | source`;

const names = "holdfast ls 2>/dev/null | cut -f1";

const bash = (words: string): string => `_holdfast() {
  local word=\${COMP_WORDS[COMP_CWORD]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${words}" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$(${names})" -- "$word"))
  fi
}
complete -F _holdfast holdfast`;

const scripts: Readonly<Record<string, (words: string) => string>> = {
  bash,
  zsh: (words) => `autoload -U +X bashcompinit && bashcompinit\n${bash(words)}`,
  fish: (words) => `complete -c holdfast -f
complete -c holdfast -n __fish_use_subcommand -a "${words}"
complete -c holdfast -n "not __fish_use_subcommand" -a "(${names})"`,
};

/** @param names of all commands. */
export const completionOf = (names: readonly string[]): CliCommand => ({
  usage,
  run: async ([shell = ""]) => {
    if (shell === "--help" || shell === "-h") return print(usage);
    const script = scripts[shell];
    if (script === undefined) throw new UsageError("the shell is missing: bash, zsh or fish");
    return print(script(names.join(" ")));
  },
});
