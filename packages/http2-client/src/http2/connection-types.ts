import type { TransportAnswer, TransportRequest } from "../transport.ts";

/** One `send` on its way; it may travel on several connections, one after the other. */
export type Job = {
  readonly request: TransportRequest;
  /** Order of arrival: what is sent again goes before what came later. */
  readonly order: number;
  readonly resolve: (answer: TransportAnswer) => void;
  done: boolean;
  resends: number;
  connection: Connection | undefined;
  /** Its stream on that connection. */
  streamId: number;
  group: Set<Job> | undefined;
};

export type ConnectionEvents = {
  /** A place for a request may be free, or the connection takes none any more. */
  changed(): void;
  finished(job: Job, answer: TransportAnswer): void;
  /** The socket is gone. `served`: it answered at least one request; else the attempt was in vain. */
  closed(connection: Connection, served: boolean, reason: string): void;
};

/** One HTTP/2 connection over TLS, from its first packet to its last. */
export type Connection = {
  /** Takes new requests, or will once it is connected and known to be alive. */
  usable(): boolean;
  connecting(): boolean;
  /** How many more requests may be written now. */
  room(): number;
  /** Writes the job's request, which the pool has checked, and sets its `streamId`. */
  send(job: Job): void;
  /** Nobody waits for that answer any more: cancels it, and asks the peer whether it is still there. */
  abandon(job: Job): void;
  /** No new requests; closes once the last answer is here. */
  drain(): void;
  destroy(reason: string): void;
};

/** Debug data of a GOAWAY is the peer's to choose: APNs puts its reason there. */
export function goawayWords(code: number, data: Uint8Array | undefined): string {
  const text = Buffer.from(data ?? []).toString("latin1", 0, DEBUG_DATA_SHOWN);
  return `GOAWAY with code ${code}${text === "" ? "" : ": "}${text.replace(/[^\x20-\x7e]/g, "?")}`;
}

const DEBUG_DATA_SHOWN = 120;
