const milliseconds: Record<string, number> = { "": 1, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const bytes: Record<string, number> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
};

const quantity = (text: string, units: Record<string, number>): number | undefined => {
  const match = /^([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([A-Za-z]*)$/.exec(text.trim());
  const unit = units[(match?.[2] ?? "").toLowerCase()];
  if (!match || unit === undefined) return undefined;
  const value = Math.round(Number(match[1]) * unit);
  return Number.isSafeInteger(value) ? value : undefined;
};

/** `250ms`, `10s`, `1.5h` or a bare number of milliseconds; undefined when it is none of that. */
export const durationToMs = (text: string): number | undefined => quantity(text, milliseconds);

/** `64KiB`, `5MB` or a bare number of bytes; undefined when it is none of that. */
export const sizeToBytes = (text: string): number | undefined => quantity(text, bytes);
