import { meter } from "@herald/kit";

type Load = { readonly now: () => number; readonly limit: number };

/** Exports connections and memory in use, with their limits. Returns a function that unregisters the gauges. */
export const registerLoadMetrics = ({
  connections,
  memoryBytes,
}: {
  readonly connections: Load;
  readonly memoryBytes: Load;
}): (() => void) => {
  const made = meter();
  const gauge = (name: string, description: string) => made.createObservableGauge(name, { description });
  const gauges = [
    [gauge("herald.http.connections", "Open connections"), connections.now],
    [gauge("herald.http.connections_limit", "The limit of connections"), () => connections.limit],
    [
      gauge("herald.http.memory_bytes", "Bytes of bodies being received and of responses that clients have not read"),
      memoryBytes.now,
    ],
    [gauge("herald.http.memory_limit_bytes", "The limit of memory_bytes"), () => memoryBytes.limit],
  ] as const;
  const observe: Parameters<typeof made.addBatchObservableCallback>[0] = (result) => {
    for (const [one, value] of gauges) result.observe(one, value());
  };
  const observables = gauges.map(([one]) => one);
  made.addBatchObservableCallback(observe, observables);
  return () => made.removeBatchObservableCallback(observe, observables);
};
