import { Argument, type Command } from "commander";
import type { Add } from "../define.ts";

/** Completions of the last word. */
export const candidates = (program: Command, typedWords: readonly string[]): string[] => {
  // bash makes three words of `--status=active`, zsh one.
  const bash = typedWords.at(-1) === "=" ? [...typedWords, ""] : typedWords;
  const [, name, value] = /^(--[\w-]+)=(.*)$/.exec(bash.at(-1) ?? "") ?? [];
  if (name !== undefined && value !== undefined)
    return candidates(program, [...bash.slice(0, -1), name, value]).map((found) => `${name}=${found}`);
  const words = bash.filter((word) => word !== "=");
  const typed = words.at(-1) ?? "";
  let command = program;
  for (const word of words.slice(0, -1)) command = command.commands.find((one) => one.name() === word) ?? command;
  const options = [...command.options, ...(command === program ? [] : program.options)];
  const before = options.find(({ long }) => long !== undefined && long === words.at(-2));
  if (before?.argChoices) return before.argChoices.filter((choice) => choice.startsWith(typed));
  // A free-form value.
  if (before?.required) return [];
  const names = typed.startsWith("-")
    ? [...options.map(({ long }) => long ?? ""), "--help"]
    : [
        ...command.commands.map((one) => one.name()).filter((name) => !name.startsWith("_")),
        ...command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
      ];
  return names.filter((name) => name.startsWith(typed)).toSorted();
};

const scripts = {
  bash: `_herald() {
  local IFS=$'\\n'
  COMPREPLY=($(herald __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _herald herald`,
  zsh: `#compdef herald
_herald() {
  local -a found
  found=("\${(@f)$(herald __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -a found || _files
}
compdef _herald herald`,
} as const;

export const addCompletion = (program: Command, add: Add) => {
  add(program, {
    usage: "completion",
    does: "Print a completion script for your shell",
    examples: [
      ["completion bash >> ~/.bashrc", "for bash"],
      ["completion zsh >> ~/.zshrc", "for zsh"],
    ],
    run: async ({ terminal }, [shell]) => terminal.print(scripts[shell as keyof typeof scripts]),
  }).addArgument(new Argument("<shell>", "which one").choices(Object.keys(scripts)));

  program.command("__complete [words...]", { hidden: true }).action((words: string[]) => {
    const found = candidates(program, words);
    if (found.length > 0) program.configureOutput().writeOut?.(found.join("\n"));
  });
};
