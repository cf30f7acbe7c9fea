export type LogLine = {
  readonly part: string;
  /** The unparsed line. */
  readonly line: string;
  /** Pino's level, for lines of services. */
  readonly level?: string;
  readonly msg?: string;
  readonly [field: string]: unknown;
};

const parse = (line: string): Record<string, unknown> => {
  if (!line.startsWith("{")) return {};
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return {};
  }
};

/** Collects the log lines of all parts of a system. */
export function createLogs() {
  const lines: LogLine[] = [];
  return {
    lines,
    add: (part: string, line: string): void => {
      lines.push({ ...parse(line), part, line });
    },
    /** The log lines of services that ended with an unexpected error. */
    crashes: (): readonly LogLine[] => lines.filter(({ msg }) => msg === "crashed"),
    /** Warnings and errors that may explain a failure, each cut to `characters`. */
    worth: (max = 60, characters = 2_000): string =>
      lines
        .filter(({ level }) => level === undefined || !["trace", "debug", "info"].includes(level))
        .slice(-max)
        .map(({ part, line }) => `${part.padEnd(10)} | ${line.slice(0, characters)}`)
        .join("\n"),
  };
}

export type Logs = ReturnType<typeof createLogs>;
