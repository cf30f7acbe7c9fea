/**
 * A value of users in a form that the driver stores as it is: it would take an object with a key `_bsontype` for one of its classes. A map is
 * stored in the same form. Values of the driver's classes and dates stay as they are.
 */
export const storable = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(storable);
  if (typeof value !== "object" || value === null || !isPlain(value)) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, storable(inner)] as const);
  return Object.hasOwn(value, "_bsontype") ? new Map(entries) : Object.fromEntries(entries);
};

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};
