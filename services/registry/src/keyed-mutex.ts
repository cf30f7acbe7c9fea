/**
 * Runs what has the same key one after the other, in this process: changes of one device at the same time would only begin
 * again because of each other.
 */
export const createKeyedMutex = () => {
  const last = new Map<string, Promise<unknown>>();
  return <Result>(key: string, work: () => Promise<Result>): Promise<Result> => {
    const before = last.get(key) ?? Promise.resolve();
    const running = before.then(work, work);
    const settled = running.then(
      () => undefined,
      () => undefined,
    );
    last.set(key, settled);
    void settled.then(() => {
      if (last.get(key) === settled) last.delete(key);
    });
    return running;
  };
};

export type KeyedMutex = ReturnType<typeof createKeyedMutex>;
