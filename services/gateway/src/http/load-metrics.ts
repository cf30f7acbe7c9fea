import { meter } from "@herald/kit";

type Load = { readonly now: () => number; readonly limit: number };

/** Shows what this gateway has under way beside what it may, when Prometheus asks. Returns how to end it. */
export const registerLoadMetrics = ({
  connections,
  heldBytes,
}: {
  readonly connections: Load;
  readonly heldBytes: Load;
}): (() => void) => {
  const made = meter();
  const gauge = (name: string, description: string) => made.createObservableGauge(name, { description });
  const gauges = [
    [gauge("herald.http.connections", "Connections that are open"), connections.now],
    [gauge("herald.http.connections_limit", "Connections that may be open"), () => connections.limit],
    [
      gauge("herald.http.held_bytes", "Bytes of bodies that arrive and of answers that are not taken yet"),
      heldBytes.now,
    ],
    [gauge("herald.http.held_limit_bytes", "Bytes that may be held"), () => heldBytes.limit],
  ] as const;
  const observe: Parameters<typeof made.addBatchObservableCallback>[0] = (result) => {
    for (const [one, value] of gauges) result.observe(one, value());
  };
  const observables = gauges.map(([one]) => one);
  made.addBatchObservableCallback(observe, observables);
  return () => made.removeBatchObservableCallback(observe, observables);
};
