import { deviceValueLimits } from "@herald/contracts";

type Values = { [name: string]: unknown };

const isShown = (value: unknown): boolean =>
  typeof value === "string"
    ? value.length <= deviceValueLimits.length
    : typeof value === "number" || typeof value === "boolean";

const below = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
    ? (value as Values)[key]
    : undefined;

/** The values of a device at these paths, as texts find them below `device`. One that no text can show is left out. */
export const deviceValues = (
  device: { readonly metadata?: unknown; readonly identifiers?: unknown },
  paths: readonly string[],
): Values => {
  const values: Values = {};
  for (const path of paths) {
    const keys = path.split(".");
    const value = keys.reduce<unknown>(below, device);
    if (isShown(value)) put(values, keys, value);
  }
  return values;
};

const put = (values: Values, keys: readonly string[], value: unknown): void => {
  let at = values;
  for (const key of keys.slice(0, -1)) {
    if (!Object.hasOwn(at, key)) at[key] = {};
    at = at[key] as Values;
  }
  at[keys.at(-1) ?? ""] = value;
};

/** What stands for the values of a device and its user that are not known, such as `<device.metadata.plan>`. */
export const placeholderValues = (devicePaths: readonly string[]): Values => {
  const device: Values = {};
  for (const path of devicePaths) put(device, path.split("."), `<device.${path}>`);
  return { device, user: { id: "<user.id>" } };
};
