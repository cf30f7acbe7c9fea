import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { styleText } from "node:util";
import { Interrupted } from "../failures.ts";
import { plain, visible } from "./text.ts";

/** The part of `process` that a command uses. */
export type Surroundings = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
};

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

export type Terminal = ReturnType<typeof createTerminal>;

const eraseLine = "\r\u001b[K";
const someWidth = 80;

export const createTerminal = ({ env, stdin, stdout, stderr }: Surroundings, colors = true) => {
  const isTerminal = stdout.isTTY === true;
  const hasColors = colors && isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
  /** Columns; infinite without a terminal. */
  const width = isTerminal ? stdout.columns || someWidth : Number.POSITIVE_INFINITY;
  let shown = false;
  /** Replaces the progress line on stderr, or clears it. Does nothing without a terminal. */
  const progress = (text?: string): void => {
    if (stderr.isTTY !== true || (text === undefined && !shown)) return;
    shown = text !== undefined;
    stderr.write(eraseLine + plain(text ?? "").slice(0, (stderr.columns || someWidth) - 1));
  };
  return {
    isTerminal,
    /** stdin and stderr are a terminal, so it can prompt. */
    canAsk: stdin.isTTY === true && stderr.isTTY === true,
    width,
    hasColors,
    paint: (style: Style, text: string): string =>
      hasColors ? styleText(style, text, { validateStream: false }) : text,
    print: (text: string): void => {
      progress();
      stdout.write(`${isTerminal ? visible(text, hasColors) : text}\n`);
    },
    /** Prints to stderr. */
    note: (text: string): void => {
      progress();
      stderr.write(`${stderr.isTTY ? visible(text, hasColors) : text}\n`);
    },
    progress,
  };
};

/** Prompts at the terminal. A secret is not echoed. */
export const createAsk =
  ({ stdin, stderr }: Surroundings) =>
  async (question: string, secret = false): Promise<string> => {
    const hidden = new Writable({ write: (_, __, done) => done() });
    const lines = createInterface({ input: stdin, output: secret ? hidden : stderr, terminal: true });
    if (secret) stderr.write(question);
    try {
      return await new Promise<string>((resolve, reject) => {
        lines.once("SIGINT", () => reject(new Interrupted("Nothing was done.")));
        lines.once("close", () => reject(new Interrupted("Nothing was done.")));
        lines.question(secret ? "" : question).then(resolve, reject);
      });
    } finally {
      if (secret) stderr.write("\n");
      lines.close();
    }
  };
