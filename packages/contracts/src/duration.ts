const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** A duration such as `90d` in milliseconds: up to four digits, then `m`, `h`, `d` or `w`. Undefined for any other text. */
export const parseDuration = (text: string): number | undefined => {
  const [, count, unit] = /^(\d{1,4})([mhdw])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * unitMs[unit as keyof typeof unitMs];
};
