import type { Connection } from "../connect.ts";
import type { Task } from "../delivery-batch.ts";

export type Progress = {
  /** Starts the signals, as often as the ack wait requires. */
  follow(ackWaitMs: number): void;
  stop(): void;
};

type Signalled = Pick<Task, "heardAt" | "settled"> & { readonly received: Pick<Task["received"], "working"> };

/**
 * Signals `working()` for every message in this process, running, waiting or held: after a third of the ack wait, and at once when the
 * connection is back. A message that is settled sooner costs no signal. One timer for each durable.
 */
export const createProgress = (
  connection: Pick<Connection, "connected" | "listeners">,
  tasks: ReadonlyMap<string, Signalled>,
): Progress => {
  let timer: NodeJS.Timeout | undefined;
  let tickMs = 0;
  const signal = (quietMs: number) => {
    if (!connection.connected) return;
    const now = performance.now();
    for (const task of tasks.values()) {
      if (task.settled || now - task.heardAt < quietMs) continue;
      task.received.working();
      task.heardAt = now;
    }
  };
  const onConnection = (connected: boolean) => {
    if (connected) signal(0);
  };
  connection.listeners.add(onConnection);
  return {
    follow(ackWaitMs) {
      // Checks twice as often, so that signals are at most half an ack wait apart and a stall of the process has the other half.
      if (tickMs === ackWaitMs / 6) return;
      tickMs = ackWaitMs / 6;
      clearInterval(timer);
      timer = setInterval(signal, tickMs, ackWaitMs / 3);
    },
    stop() {
      connection.listeners.delete(onConnection);
      clearInterval(timer);
    },
  };
};
