import { cutText, importLimits, isObject } from "@herald/contracts";

/** A field of the app: what the file calls it, its key, and its value. */
export type OwnField = { readonly field: string; readonly key: string; readonly value: unknown };

/** The fields of an object of the app, which the file calls `name`. */
export const ownFields = (name: string, object: Readonly<Record<string, unknown>> = {}): OwnField[] =>
  Object.entries(object).map(([key, value]) => ({ field: `${name}.${key}`, key, value }));

/** Reports that a field is stored under another name. */
export type OnRenamed = (field: string, name: string) => void;

/** Herald refuses these in keys: `.` separates paths, `$` is reserved for the database. */
const safeKey = (key: string): string => key.replaceAll(/[.$\0]/g, "_") || "_";

/** Long paths end early: a report cuts them. */
const pathTo = (parent: string, key: string): string =>
  parent.length > importLimits.fieldLength ? parent : `${parent}.${cutText(key, importLimits.fieldLength)}`;

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/**
 * An object with the app's fields under keys that Herald accepts, at every depth. Keys that would be the same get a number, so that no value
 * replaces another one; of two fields with one key and one value, one is enough.
 */
export const ownData = (fields: readonly OwnField[], path: string, onRenamed: OnRenamed): Record<string, unknown> => {
  const data = new Map<string, unknown>();
  const numbers = new Map<string, number>();
  const put = ({ field, key, value }: OwnField, safe: string): void => {
    const inner = ownValue(value, field, pathTo(path, safe), onRenamed);
    if (safe === key && data.has(key) && isSame(data.get(key), inner)) return;
    let name = safe;
    while (data.has(name)) {
      const n = (numbers.get(safe) ?? 1) + 1;
      numbers.set(safe, n);
      name = `${safe}_${n}`;
    }
    if (name !== key) onRenamed(field, pathTo(path, name));
    data.set(name, inner);
  };
  const renamed: OwnField[] = [];
  // Keys that stay come first, so that they do.
  for (const one of fields) {
    if (one.value === undefined || one.value === null) continue;
    if (safeKey(one.key) === one.key) put(one, one.key);
    else renamed.push(one);
  }
  for (const one of renamed) put(one, safeKey(one.key));
  return Object.fromEntries(data);
};

const ownValue = (value: unknown, field: string, path: string, onRenamed: OnRenamed): unknown => {
  if (Array.isArray(value)) return value.map((item) => ownValue(item, field, path, onRenamed));
  if (!isObject(value)) return value;
  const fields = Object.entries(value).map(([key, inner]) => ({ field: pathTo(field, key), key, value: inner }));
  return ownData(fields, path, onRenamed);
};
