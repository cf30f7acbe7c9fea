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
    /** What services say that end because of an error that they did not expect. */
    crashes: (): readonly LogLine[] => lines.filter(({ msg }) => msg === "crashed"),
    /** The warnings and errors, each cut to `characters`: where to look for the reason of a failure. */
    worth: (max = 60, characters = 2_000): string =>
      lines
        .filter(({ level }) => level === undefined || !["trace", "debug", "info"].includes(level))
        .slice(-max)
        .map(({ part, line }) => `${part.padEnd(10)} | ${line.slice(0, characters)}`)
        .join("\n"),
  };
}

export type Logs = ReturnType<typeof createLogs>;
