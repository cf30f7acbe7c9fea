import { z } from "zod";

/**
 * What texts may show of a device: `metadata.<path>` and `identifiers.<path>`. `paths`: that one notification shows. `length`: of a value;
 * apps may store more, and a longer one counts as missing. `depth`: names below `metadata` or `identifiers`.
 */
export const deviceValueLimits = { paths: 10, length: 256, depth: 5 } as const;

export const deviceValueSources = ["metadata", "identifiers"] as const;

const name = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** Whether texts may show what a device has at this path of names. */
export const isDevicePath = ([of, ...names]: readonly string[]): boolean =>
  deviceValueSources.some((source) => source === of) &&
  names.length > 0 &&
  names.length <= deviceValueLimits.depth &&
  names.every((one) => name.test(one));

/** Paths of values below `device`, such as `metadata.plan`, each with its names joined by a dot. */
export const DevicePaths = z.array(z.string()).min(1).max(deviceValueLimits.paths);
