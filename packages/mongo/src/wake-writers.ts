import type { Socket } from "node:net";
// @ts-expect-error the driver publishes no types of its parts
import { Connection } from "mongodb/lib/cmap/connection.js";

type DriverConnection = { cleanup(error: Error): void; readonly socket: Socket };

const connection: DriverConnection = Connection.prototype;
const { cleanup } = connection;

function cleanupAndWake(this: DriverConnection, error: Error): void {
  cleanup.call(this, error);
  this.socket.emit("drain");
}

/**
 * Corrects an error of the driver (ADR 4; docs/explanation/driver-report.md says when it goes): a command that is written after its socket
 * was destroyed, and before the socket emits "close", waits for "drain" forever. If the command is the monitor's, the client never finds
 * its server again. With the event that wait ends, and the driver throws the connection's error.
 */
export const wakeWriters = (): void => {
  connection.cleanup = cleanupAndWake;
};
