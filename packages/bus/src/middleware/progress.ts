import type { Connection } from "../connect.ts";
import type { Task } from "../delivery-batch.ts";

export type Progress = {
  /** Tells the broker from now on, as often as its ack wait asks for. */
  follow(ackWaitMs: number): void;
  stop(): void;
};

type Signalled = Pick<Task, "heardAt" | "settled"> & { readonly received: Pick<Task["received"], "working"> };

/**
 * Signals `working()` for every message in this process, whether it runs, waits for its turn or is held: when a third of the ack
 * wait has passed since the broker heard of it, and at once when the connection is back. What is done sooner costs no signal. One
 * timer for all of a durable.
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
      // Looked at twice as often, so that the longest silence is half an ack wait and a stall has the other half.
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
