import type { TransportLimits } from "../transport.ts";

type Options = {
  readonly limits: Pick<TransportLimits, "pingIntervalMs" | "pingTimeoutMs" | "idleTimeoutMs">;
  /** Writes a PING; `alive` is called when it is answered. False when none can be written now. */
  ping(): boolean;
  /** Since when nothing is under way, on the clock of `performance.now`; undefined while something is. */
  idleSince(): number | undefined;
  /** The peer did not answer in time. */
  dead(): void;
  /** Carried nothing for `idleTimeoutMs`. */
  idle(): void;
  /** It was under suspicion and has answered. */
  cleared(): void;
};

/** Whether the peer is still there: asked now and then, and when an answer is overdue. */
export function createLiveness({ limits, ping, idleSince, dead, idle, cleared }: Options) {
  let suspect = false;
  let deadline: NodeJS.Timeout | undefined;

  function ask(): void {
    if (deadline !== undefined || !ping()) return;
    // The rest is counted anew: after a stall of this process one timer would be due before what has arrived is read.
    const rest = limits.pingTimeoutMs / 5;
    deadline = setTimeout(() => {
      deadline = setTimeout(dead, rest);
    }, limits.pingTimeoutMs - rest);
  }

  const heartbeat = setInterval(() => {
    const since = idleSince();
    if (since !== undefined && performance.now() - since >= limits.idleTimeoutMs) idle();
    else ask();
  }, limits.pingIntervalMs);
  heartbeat.unref();

  return {
    /** An answer is overdue: nothing new should be given to this peer until it is heard of. */
    suspect: () => suspect,
    doubt(): void {
      suspect = true;
      ask();
    },
    alive(): void {
      clearTimeout(deadline);
      deadline = undefined;
      if (!suspect) return;
      suspect = false;
      cleared();
    },
    stop(): void {
      clearTimeout(deadline);
      clearInterval(heartbeat);
    },
  };
}
