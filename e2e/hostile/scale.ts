/** The variables that pass options of the command to the tests and the reporter. */
export const hostileVariables = {
  full: "HERALD_HOSTILE_FULL",
  write: "HERALD_HOSTILE_WRITE",
  examples: "HERALD_HOSTILE_EXAMPLES",
} as const;

/** The full amount of a full run, or the one of a short run. */
export const scale = (full: number, short: number): number => (process.env[hostileVariables.full] ? full : short);
