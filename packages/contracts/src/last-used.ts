/** Keeps the values that were used last. */
export const createLastUsed = <Value>(max: number) => {
  const kept = new Map<string, Value>();
  return (key: string, create: () => Value): Value => {
    const known = kept.get(key);
    // Undefined may be a value, too: that a text means nothing is found out once.
    const value = known === undefined && !kept.has(key) ? create() : (known as Value);
    kept.delete(key);
    kept.set(key, value);
    if (kept.size > max) kept.delete(kept.keys().next().value ?? key);
    return value;
  };
};
