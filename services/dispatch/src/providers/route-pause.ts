/** Consecutive failures that pause a route: more than a short disturbance, and less than half of a batch's first chunk. */
const failuresToPause = 20;
/** A lost connection or a provider's restart is often over by then … */
const firstPauseMs = 1_000;
/** … and dispatch notices a recovered server within a minute. */
const maxPauseMs = 60_000;
/** How many pushes at a time probe whether the server works again. */
const maxProbes = 5;
/** While probes are in flight, other pushes wait this long: a response usually takes less, a timeout more. */
const probeCheckMs = 5_000;
/** A server that limits its senders is asked in rounds of at least this length, because each round reads rows that wait. */
const roundMs = 1_000;
/**
 * Each success shortens a limited route's interval by a twentieth. So a server that takes one push in five seconds refuses one of fourteen
 * or fewer, and one that takes hundreds a second is at full speed again within half a minute.
 */
const successFactor = 0.95;
/** A limited route with a shorter interval is open. */
const openBelowMs = 20;
/** After so many intervals without a push, an earlier limit says little about the server. */
const idleIntervals = 10;
/** Between the turns of two rows that wait for a failing server: the first of them probe it before the others look. */
const turnMs = 20;

/** Why a route pauses: its server fails or cannot be reached, or it limits how much a sender may send. */
type PauseKind = "failing" | "limited";

/** When a push was admitted to a paused route, in milliseconds since 1970; 0: the route was open. */
export type AdmittedAt = number;

/**
 * Pauses pushes to a server. After a pause, few pushes probe the server: if it refuses them again, the next pause is twice as long. A
 * failing server that answers is open again. One that limits its senders gets single pushes at an interval, which each success shortens.
 * Times are milliseconds since 1970. Callers report every admitted push exactly once.
 */
export const createRoutePause = () => {
  let failures = 0;
  let kind: PauseKind = "failing";
  /** The length of the last pause, and the interval of a limited route; 0 while the route is open. */
  let intervalMs = 0;
  let until = 0;
  /** Pushes that were admitted in this round. */
  let probes = 0;
  let roundAt = 0;
  let lastTurn = 0;

  /** How many pushes a round has: of a limited route those of a second. */
  const quota = () =>
    kind === "failing" ? maxProbes : Math.min(maxProbes, Math.max(1, Math.floor(roundMs / intervalMs)));
  const roundEnd = () => roundAt + Math.max(intervalMs, roundMs);

  const blockedUntil = (at: number): number | undefined => {
    if (intervalMs === 0) return undefined;
    if (at < until) return until;
    if (probes < quota()) return undefined;
    if (kind === "failing") return at + probeCheckMs;
    return at < roundEnd() ? roundEnd() : undefined;
  };

  /** A push sent before the pause says nothing about the server now. Of several probes, the first decides. */
  const lengthen = (why: PauseKind, admittedAt: AdmittedAt, at: number): boolean => {
    const wasOpen = intervalMs === 0;
    if (!wasOpen && (admittedAt === 0 || admittedAt < until)) return false;
    kind = why;
    intervalMs = wasOpen ? firstPauseMs : Math.min(maxPauseMs, Math.max(firstPauseMs, 2 * intervalMs));
    until = at + intervalMs;
    failures = 0;
    probes = 0;
    return true;
  };
  const observe = <Result>(result: Result): Result => {
    pause.isOpen = intervalMs === 0;
    pause.isUntroubled = pause.isOpen && failures === 0;
    return result;
  };

  const pause = {
    /** Whether every push is admitted. A field and not a function, as the next one, because it is read for each push. */
    isOpen: true,
    /** Whether it is open and the last push succeeded, so that another success changes nothing. */
    isUntroubled: true,
    is: (what: PauseKind) => intervalMs !== 0 && kind === what,
    /** Until when pushes are blocked; undefined when one is admitted. */
    blockedUntil,
    /** Admits one more push, or returns the time until which it must wait. */
    admit: (at: number): { readonly admittedAt: AdmittedAt } | number => {
      const blocked = blockedUntil(at);
      if (blocked !== undefined) return blocked;
      if (intervalMs === 0) return { admittedAt: 0 };
      if (kind === "limited" && probes > 0 && at >= roundEnd()) {
        if (at - roundAt > idleIntervals * intervalMs) intervalMs = Math.min(intervalMs, firstPauseMs);
        probes = 0;
      }
      if (probes === 0) roundAt = at;
      probes++;
      return { admittedAt: at };
    },
    /** The push was not sent, so the server's health is still unknown. */
    released: (admittedAt: AdmittedAt): void => {
      if (admittedAt !== 0 && admittedAt >= until && probes > 0) probes--;
    },
    /** The server responded, with any status but a limit. True when that opens the route. */
    succeeded: (admittedAt: AdmittedAt): boolean => {
      failures = 0;
      if (intervalMs === 0) return observe(false);
      if (kind === "limited") {
        if (admittedAt === 0 || admittedAt < until) return false;
        intervalMs *= successFactor;
        if (intervalMs >= openBelowMs) return false;
      }
      intervalMs = 0;
      return observe(true);
    },
    /** The server failed once more. True when that begins or lengthens the pause. */
    failed: (admittedAt: AdmittedAt, at: number): boolean => {
      if (intervalMs !== 0) return lengthen(kind, admittedAt, at);
      return observe(++failures >= failuresToPause && lengthen("failing", admittedAt, at));
    },
    /** The server certainly takes no push now. True when that begins or lengthens the pause. */
    refused: (why: PauseKind, admittedAt: AdmittedAt, at: number): boolean => observe(lengthen(why, admittedAt, at)),
    /**
     * When a row looks again, whose devices are blocked until `at`. Rows take turns, within a minute: if all of them looked at the same
     * moment, all but one would do so in vain.
     */
    turnFrom: (at: number): number => {
      const next = lastTurn + (kind === "limited" ? Math.max(intervalMs, roundMs) / quota() : turnMs);
      lastTurn = next < at || next > at + maxPauseMs ? at : next;
      return lastTurn;
    },
  };
  return pause;
};

export type RoutePause = ReturnType<typeof createRoutePause>;
