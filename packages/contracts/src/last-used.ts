/** Keeps the values that were used last. */
export const createLastUsed = <Value>(max: number) => {
  const kept = new Map<string, Value>();
  return (key: string, create: () => Value): Value => {
    const value = kept.get(key) ?? create();
    kept.delete(key);
    kept.set(key, value);
    if (kept.size > max) kept.delete(kept.keys().next().value ?? key);
    return value;
  };
};
