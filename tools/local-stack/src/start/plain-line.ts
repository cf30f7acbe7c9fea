/** Fields that the line's prefix and start already show, and the span id, which no tool needs. */
const leftOut = new Set(["level", "time", "msg", "service", "pid", "hostname", "v", "spanId"]);

/**
 * Makes a JSON log line readable: `12:00:01 info listening address=127.0.0.1`. Any other line stays. Escapes what a terminal acts on, which
 * devices and senders may write.
 */
export const plainLine = (line: string): string =>
  inWords(line).replaceAll(
    /(?!\t)[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (found) => `\\u${(found.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );

function inWords(line: string): string {
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

/** Whether a line is a service's log at info or below from before `at`, in ms since the epoch. */
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
  const { message, type, stack, ...details } = (value ?? {}) as Record<string, unknown>;
  if (typeof message !== "string") return JSON.stringify(value);
  // What a library says beside its message is often the cause, such as an OAuth error.
  const more = Object.entries(details).filter(([, one]) => typeof one === "string" || typeof one === "number");
  return JSON.stringify(more.length === 0 ? message : `${message} (${more.map((pair) => pair.join(": ")).join(", ")})`);
}
