import type { Connection } from "../connect.ts";
import type { Task } from "../job.ts";

export type Progress = {
  /** Tells the broker from now on, as often as its ack wait asks for. */
  follow(ackWaitMs: number): void;
  stop(): void;
};

/**
 * Signals `working()` for every message in this process, whether it runs, waits for its turn or is held: three times an ack wait,
 * and at once when the connection is back. One timer for all of a durable.
 */
export const createProgress = (connection: Connection, tasks: ReadonlyMap<string, Task>): Progress => {
  let timer: NodeJS.Timeout | undefined;
  let everyMs = 0;
  const signal = () => {
    if (!connection.connected) return;
    for (const task of tasks.values()) if (!task.settled) task.received.working();
  };
  const onConnection = (connected: boolean) => {
    if (connected) signal();
  };
  connection.listeners.add(onConnection);
  return {
    follow(ackWaitMs) {
      if (everyMs === ackWaitMs / 3) return;
      everyMs = ackWaitMs / 3;
      clearInterval(timer);
      timer = setInterval(signal, everyMs);
    },
    stop() {
      connection.listeners.delete(onConnection);
      clearInterval(timer);
    },
  };
};
