export type LogLine = {
  readonly part: string;
  /** As it was written. */
  readonly line: string;
  /** Pino's, where the line is one of a service. */
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

/** Everything that the parts of a system say. */
export function createLogs() {
  const lines: LogLine[] = [];
  return {
    lines,
    add: (part: string, line: string): void => {
      lines.push({ ...parse(line), part, line });
    },
    /** What somebody wants to see who looks for the reason of a failure. */
    worth: (most = 60): string =>
      lines
        .filter(({ level }) => level === undefined || !["trace", "debug", "info"].includes(level))
        .slice(-most)
        .map(({ part, line }) => `${part.padEnd(10)} | ${line}`)
        .join("\n"),
  };
}

export type Logs = ReturnType<typeof createLogs>;
