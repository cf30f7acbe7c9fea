/** Fields that the prefix and the line's beginning already show, and the span id, which no tool asks for. */
const leftOut = new Set(["level", "time", "msg", "service", "pid", "hostname", "v", "spanId"]);

/** A JSON log line as a person reads it: `12:00:01 info listening address=127.0.0.1`. Any other line as it is. */
export function plainLine(line: string): string {
  const fields = parse(line);
  if (!fields || typeof fields.level !== "string") return line;
  const time = typeof fields.time === "string" ? fields.time.slice(11, 19) : "";
  const rest = Object.entries(fields)
    .filter(([name]) => !leftOut.has(name))
    .map(([name, value]) => `${name}=${plainValue(value)}`);
  return [time, fields.level.padEnd(5), fields.msg, ...rest]
    .filter((part) => part !== "" && part !== undefined)
    .join(" ");
}

/** A service's line at info or below from before this time, in ms since the epoch. */
export function isRoutineBefore(line: string, at: number): boolean {
  const fields = parse(line);
  return (fields?.level === "info" || fields?.level === "debug") && Date.parse(String(fields.time)) < at;
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function plainValue(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  const message = (value as { message?: unknown } | null)?.message;
  return typeof message === "string" ? JSON.stringify(message) : JSON.stringify(value);
}
