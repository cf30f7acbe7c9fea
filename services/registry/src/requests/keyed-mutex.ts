/**
 * Runs work of the same key one after another, in this process: concurrent changes of one device would only conflict. Work of several keys
 * waits for its turn at all of them, which it takes at once, so that no two wait for each other.
 */
export const createKeyedMutex = () => {
  const last = new Map<string, Promise<unknown>>();
  return <Result>(key: string | readonly string[], work: () => Promise<Result>): Promise<Result> => {
    const keys = typeof key === "string" ? [key] : key;
    const before = [...new Set(keys.flatMap((one) => last.get(one) ?? []))];
    const running = (before.length > 1 ? Promise.all(before) : (before[0] ?? Promise.resolve())).then(work);
    const settled = running
      .catch(() => undefined)
      .then(() => {
        for (const one of keys) if (last.get(one) === settled) last.delete(one);
      });
    for (const one of keys) last.set(one, settled);
    return running;
  };
};

export type KeyedMutex = ReturnType<typeof createKeyedMutex>;
