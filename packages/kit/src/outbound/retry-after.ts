/** The longest wait that a malformed or hostile header can cause; attempts end long before it. */
const longestMs = 86_400_000;

/** Parses `Retry-After`, as seconds or as an HTTP date, to milliseconds from `now`; undefined for other text. */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,15}$/.test(text)) return Math.min(Number(text) * 1_000, longestMs);
  // Only the form of RFC 9110: Date.parse accepts much other text as a date.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.min(Math.max(at - now.getTime(), 0), longestMs);
}
