import type { TransportLimits } from "../transport.ts";

type Deps = {
  readonly limits: Pick<TransportLimits, "pingIntervalMs" | "pingTimeoutMs" | "idleTimeoutMs">;
  /** Writes a PING; `onPong` is called when it is answered. False when none can be written now. */
  sendPing(): boolean;
  /** Since when nothing is under way, on the clock of `performance.now`; undefined while something is. */
  idleSince(): number | undefined;
  /** The peer did not answer in time. */
  onDead(): void;
  /** Carried nothing for `idleTimeoutMs`. */
  onIdle(): void;
};

/** Whether the peer is still there: asked now and then, and when an answer is overdue. */
export function createKeepalive({ limits, sendPing, idleSince, onDead, onIdle }: Deps) {
  let suspect = false;
  let deadline: NodeJS.Timeout | undefined;

  function ask(): void {
    if (deadline !== undefined || !sendPing()) return;
    // The last fifth is a timer of its own: after a stall of this process one timer would be due before what has arrived is read.
    const rest = limits.pingTimeoutMs / 5;
    deadline = setTimeout(() => {
      deadline = setTimeout(onDead, rest);
    }, limits.pingTimeoutMs - rest);
  }

  const heartbeat = setInterval(() => {
    const since = idleSince();
    if (since !== undefined && performance.now() - since >= limits.idleTimeoutMs) onIdle();
    else ask();
  }, limits.pingIntervalMs);
  heartbeat.unref();

  return {
    /** An answer is overdue: nothing new should be given to this peer until it is heard of. */
    isSuspect: () => suspect,
    probe(): void {
      suspect = true;
      ask();
    },
    onPong(): void {
      clearTimeout(deadline);
      deadline = undefined;
      suspect = false;
    },
    stop(): void {
      clearTimeout(deadline);
      clearInterval(heartbeat);
    },
  };
}
