/** So many failures in a row: more than a moment's trouble, and less than half of the first chunk of a batch. */
const failuresToOpen = 20;
/** A lost connection or a provider's restart is over by then … */
const firstOpenMs = 5_000;
/** … and a recovered provider is noticed within a minute. */
const maxOpenMs = 60_000;
/** So many find out, at a time, whether it works again. */
const maxProbes = 5;
/** While they are under way the others look again so often: an answer is usually there, a timeout takes longer. */
const probeCheckMs = 5_000;

/** An ordinary push, or a probe of whether the server works again. */
export type Admission = "free" | "probe";

/**
 * Blocks pushes to a server that keeps failing. Only failures that say nothing about the device or the message count.
 * Times are milliseconds since 1970; every push that was admitted is reported once.
 */
export type CircuitBreaker = {
  closed(): boolean;
  /** Until when nothing is admitted; undefined when something is. */
  blockedUntil(at: number): number | undefined;
  /** Admits one more push, or says until when it must wait. */
  admit(at: number): Admission | number;
  /** The server answered, whatever it said. True when that closes the breaker. */
  succeeded(admission: Admission): boolean;
  /** True when that opens the breaker, or keeps it open for longer. */
  failed(admission: Admission, at: number): boolean;
  /** Nothing was sent, so nothing is known. */
  released(admission: Admission): void;
};

export const createCircuitBreaker = (): CircuitBreaker => {
  let failures = 0;
  let openings = 0;
  /** 0 while it is closed. */
  let openUntil = 0;
  let probes = 0;

  const blockedUntil = (at: number): number | undefined => {
    if (openUntil === 0) return undefined;
    if (at < openUntil) return openUntil;
    return probes < maxProbes ? undefined : at + probeCheckMs;
  };
  const open = (at: number): true => {
    openUntil = at + Math.min(maxOpenMs, firstOpenMs * 2 ** openings);
    openings++;
    failures = 0;
    return true;
  };
  const endProbe = (admission: Admission): void => {
    if (admission === "probe") probes--;
  };

  return {
    closed: () => openUntil === 0,
    blockedUntil,
    admit: (at) => {
      const blocked = blockedUntil(at);
      if (blocked !== undefined) return blocked;
      if (openUntil === 0) return "free";
      probes++;
      return "probe";
    },
    succeeded: (admission) => {
      endProbe(admission);
      failures = 0;
      if (openUntil === 0) return false;
      openUntil = 0;
      openings = 0;
      return true;
    },
    failed: (admission, at) => {
      endProbe(admission);
      if (openUntil === 0) return ++failures >= failuresToOpen && open(at);
      // What was sent before it opened says nothing about now, and of several probes the first decides.
      return admission === "probe" && at >= openUntil && open(at);
    },
    released: endProbe,
  };
};
