import type { TransportLimits } from "../transport.ts";

type Deps = {
  readonly limits: Pick<TransportLimits, "pingIntervalMs" | "pingTimeoutMs" | "idleTimeoutMs">;
  /** Writes a PING whose answer calls `onPong`. False when no PING can be written now. */
  sendPing(): boolean;
  /** When the last stream ended, in `performance.now` time; undefined while a stream is open or the connection is being opened. */
  idleSince(): number | undefined;
  /** The peer did not answer in time. */
  onDead(): void;
  /** The connection carried no request for `idleTimeoutMs`. */
  onIdle(): void;
};

/** Checks with PING whether the peer is alive: at intervals, and when an answer is overdue. */
export function createKeepalive({ limits, sendPing, idleSince, onDead, onIdle }: Deps) {
  let deadline: NodeJS.Timeout | undefined;

  function ask(): void {
    if (deadline !== undefined || !sendPing()) return;
    // Two timers, because after a stall of this process a single timer would fire before the arrived bytes are read.
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

  const keepalive = {
    /** An answer is overdue: send no new requests to this peer until it answers the PING. */
    isSuspect: false,
    probe(): void {
      keepalive.isSuspect = true;
      ask();
    },
    onPong(): void {
      clearTimeout(deadline);
      deadline = undefined;
      keepalive.isSuspect = false;
    },
    stop(): void {
      clearTimeout(deadline);
      clearInterval(heartbeat);
    },
  };
  return keepalive;
}
