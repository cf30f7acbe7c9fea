import { CommanderError } from "commander";
import { createContext } from "./context.ts";
import { exitCodes, type Failure, failureOf, Interrupted } from "./failures.ts";
import { createProgram } from "./program.ts";
import { createAsk, createTerminal, type Surroundings, type Terminal } from "./terminal/terminal.ts";
import { plain, toJson } from "./terminal/text.ts";

const show = (failure: Failure, left: string | undefined, { note, paint }: Terminal, json: boolean): void => {
  const { exitCode, errors, hint, slug, status, problems, requestId, retryAfter } = failure;
  if (json) {
    const error = { slug, status, errors, problems, request_id: requestId, retry_after: retryAfter, hint, left };
    note(toJson({ error, exit_code: exitCode }));
    return;
  }
  const what = slug === undefined ? "" : paint("dim", ` (${[status, slug].filter(Boolean).join(" ")})`);
  const color = exitCode === exitCodes.interrupted ? "yellow" : "red";
  for (const [at, error] of errors.entries()) note(paint(color, plain(error)) + (at === 0 ? what : ""));
  if (hint !== undefined) note(hint);
  if (left !== undefined) note(left);
  if (requestId !== undefined) note(paint("dim", `request ${plain(requestId)}`));
};

/** Runs `herald <words>` and returns the exit code. Errors are sentences on stderr. */
export async function run(words: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr, env } = surroundings;
  // Errors of the command line itself obey these flags too, so they are read before it is parsed.
  const json = words.includes("--json");
  const terminal = createTerminal(surroundings, !words.includes("--no-color"));
  const interrupting = new AbortController();
  let stopped: string | undefined;
  let left: string | undefined;
  const onSignal = () => {
    if (interrupting.signal.aborted) process.exit(exitCodes.interrupted);
    interrupting.abort(new Interrupted(stopped));
  };
  // The reader closed the pipe: stop. A closed stderr is ignored, because the exit code still reports the result. Both listeners stay: the
  // error of the last write comes after the end.
  const onClosed = (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(exitCodes.ok);
  };
  const ignore = () => {};
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, onSignal);
  stdout.on("error", onClosed);
  stderr.on("error", ignore);
  try {
    let exitCode: number = exitCodes.ok;
    const program = createProgram(terminal, async (command, handle) => {
      const context = await createContext(command.optsWithGlobals(), {
        terminal,
        stdout,
        env,
        signal: interrupting.signal,
        ask: createAsk(surroundings),
        onInterrupt: (sentence) => {
          stopped = sentence;
        },
        onStop: (sentence) => {
          stopped = left = sentence;
        },
      });
      exitCode = (await handle(context)) || exitCodes.ok;
    });
    await program.parseAsync([...words], { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has already printed the error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    // An abort makes pending calls fail with different errors; the reason of the signal is the cause.
    const { aborted, reason } = interrupting.signal;
    const failure = failureOf(aborted ? reason : error);
    show(failure, aborted ? undefined : left, terminal, json);
    return failure.exitCode;
  } finally {
    terminal.progress();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, onSignal);
  }
}
