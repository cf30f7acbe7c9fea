/** Runs work of the same key one after another, in this process: concurrent changes of one device would only conflict. */
export const createKeyedMutex = () => {
  const last = new Map<string, Promise<unknown>>();
  return <Result>(key: string, work: () => Promise<Result>): Promise<Result> => {
    const before = last.get(key) ?? Promise.resolve();
    const running = before.then(work, work);
    const settled = running
      .catch(() => undefined)
      .then(() => {
        if (last.get(key) === settled) last.delete(key);
      });
    last.set(key, settled);
    return running;
  };
};

export type KeyedMutex = ReturnType<typeof createKeyedMutex>;
