import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Writable } from "node:stream";
import { run, type Surroundings } from "@herald/cli";
import type { Project } from "./project.ts";
import type { System } from "./system.ts";

const root = join(import.meta.dirname, "../..");
const bin = join(root, "node_modules/.bin");

export type Ran = { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string };

type Running = {
  /** Its output so far; at a terminal all of it is stdout. */
  readonly written: { readonly stdout: string; readonly stderr: string };
  /** Types at the terminal, or writes to stdin. */
  type(text: string): void;
  ended(): Promise<Ran>;
};

const watch = (child: ChildProcess): Running => {
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      written[name] += text;
    });
  const closed = once(child, "close");
  return {
    written,
    type: (text) => child.stdin?.write(text),
    ended: async () => {
      const [exitCode] = (await closed) as [number | null];
      return { exitCode, ...written };
    },
  };
};

export type CommandLine = {
  /** `herald("device", "list")`, as a script runs it. */
  herald(...words: string[]): Promise<Ran>;
  /** Parsed output with `--json`. Runs in this process, because starting one costs more than most commands. Throws on failure. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads fields of answers that it asserts on
  json(...words: string[]): Promise<any>;
  /** A shell that has `herald` among its commands. */
  shell(script: string): Running;
  /** A shell at a terminal with `columns` columns. */
  terminal(script: string, columns?: number): Running;
};

/** The installed command line, with only the given environment. */
export const commandLine = (env: Readonly<Record<string, string>>): CommandLine => {
  const environment = { PATH: `${bin}:${process.env.PATH}`, TERM: "xterm-256color", ...env };
  const start = (program: string, words: readonly string[]) =>
    watch(spawn(program, words, { cwd: root, env: environment, stdio: "pipe" }));
  const herald = async (...words: string[]) => {
    const running = start("herald", words);
    return running.ended();
  };
  return {
    herald,
    json: async (...words) => {
      const written = { stdout: "", stderr: "" };
      const stream = (name: keyof typeof written) =>
        new Writable({
          write: (text, _, done) => {
            written[name] += text;
            done();
          },
        });
      const surroundings = { env, stdin: {}, stdout: stream("stdout"), stderr: stream("stderr") };
      const exitCode = await run([...words, "--json"], surroundings as unknown as Surroundings);
      if (exitCode !== 0) throw new Error(`herald ${words.join(" ")} ended with ${exitCode}: ${written.stderr}`);
      return JSON.parse(written.stdout);
    },
    shell: (script) => start("bash", ["-c", script]),
    terminal: (script, columns = 80) =>
      start("script", ["--quiet", "--return", "--command", `stty cols ${columns}; ${script}`, "/dev/null"]),
  };
};

/** A command line with its own home folder and a profile for the project. */
export const signedIn = async (system: System, name: string, { id, token }: Project): Promise<CommandLine> => {
  const home = { HOME: join(system.folder, "home", name) };
  const { herald } = commandLine({
    ...home,
    HERALD_URL: system.gateway,
    HERALD_TOKEN: token,
    HERALD_ADMIN_TOKEN: system.adminToken,
    HERALD_PROJECT: id,
  });
  const { exitCode, stderr } = await herald("login");
  if (exitCode !== 0) throw new Error(`herald login ended with ${exitCode}: ${stderr}`);
  return commandLine(home);
};
