/** How the command tells the tests and the reporter what was asked for. */
export const hostileVariables = {
  full: "HERALD_HOSTILE_FULL",
  write: "HERALD_HOSTILE_WRITE",
  examples: "HERALD_HOSTILE_EXAMPLES",
} as const;

/** As much as is promised, or enough for a first look. */
export const scale = (full: number, short: number): number => (process.env[hostileVariables.full] ? full : short);
