import { join } from "node:path";
import { Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { run, type Surroundings } from "@herald/cli";
import { type CommandLine, commandLine, type Ran, signedIn } from "./command-line.ts";
import type { Project } from "./project.ts";
import type { System } from "./system.ts";

type Environment = Readonly<Record<string, string>>;

export type QuickCommandLine = CommandLine & {
  /** What a command writes at a terminal with `columns` columns, without control sequences. */
  screen(words: string, columns?: number): Promise<{ readonly exitCode: number; readonly text: string }>;
};

/** A stream that keeps what is written. With `columns` it is a terminal. */
const stream = (write: (text: string) => void, columns?: number) =>
  Object.assign(
    new Writable({
      write: (text, _, done) => {
        write(String(text));
        done();
      },
    }),
    columns === undefined ? {} : { isTTY: true, columns },
  );

/** The words of a command without a shell: only single quotes are known. */
const wordsOf = (line: string): string[] => (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ""));

/**
 * The command line whose `herald` and `screen` run in this process, because starting one costs more than most commands. `shell` and
 * `terminal` still start it: for pipes, prompts, signals and stdin.
 */
export const quickCommandLine = (env: Environment): QuickCommandLine => {
  const runHere = (words: readonly string[], streams: object) =>
    run(words, { env: { TERM: "xterm-256color", ...env }, ...streams } as unknown as Surroundings);
  return {
    ...commandLine(env),
    herald: async (...words): Promise<Ran> => {
      const written = { stdout: "", stderr: "" };
      const exitCode = await runHere(words, {
        stdin: {},
        stdout: stream((text) => (written.stdout += text)),
        stderr: stream((text) => (written.stderr += text)),
      });
      return { exitCode, ...written };
    },
    screen: async (words, columns = 200) => {
      let text = "";
      const terminal = () =>
        stream((more) => {
          text += more;
        }, columns);
      const exitCode = await runHere(wordsOf(words), {
        stdin: { isTTY: true },
        stdout: terminal(),
        stderr: terminal(),
      });
      return { exitCode, text: stripVTControlCharacters(text).replaceAll("\r", "") };
    },
  };
};

/** After a `herald login` as its own process: a command line with its own home folder and a profile for the project. */
export const quickSignedIn = async (system: System, name: string, project: Project): Promise<QuickCommandLine> => {
  await signedIn(system, name, project);
  return quickCommandLine({ HOME: join(system.folder, "home", name) });
};
