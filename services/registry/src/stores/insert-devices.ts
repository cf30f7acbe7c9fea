import type { OutboxEvent } from "@herald/contracts";
import { type Inserted, inOneCommand, insertEach } from "@herald/mongo";
import type { Collection } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";
import type { PendingEvents, PendingRecord } from "./pending-events.ts";

type NewDevice = { readonly document: DeviceDocument; readonly events: readonly OutboxEvent[] };
type Outcome = { readonly inserted: Inserted; readonly record: PendingRecord };

/**
 * Inserts devices, those of the same moment in one command, and has the events of each published. Resolves to false when another device
 * of the project got the token first.
 */
export const insertDevices = (devices: Collection<DeviceDocument>, pending: Pick<PendingEvents, "add" | "settle">) => {
  const commit = inOneCommand<NewDevice, Outcome>(async (group) => {
    const record = await pending.add(
      group.flatMap(({ events }) => events),
      group.length,
    );
    // Where this throws nobody knows which of them are stored: the record stays for the sweep, which looks.
    const outcomes = await insertEach(
      devices,
      group.map(({ document }) => document),
    );
    return outcomes.map((inserted) => ({ inserted, record }));
  });
  return async (document: DeviceDocument, events: readonly OutboxEvent[]): Promise<boolean> => {
    const { inserted, record } = await commit({ document, events });
    // Here and not with the group, so that each event carries the request id and the trace of its own request.
    await pending.settle(record, "done" in inserted && inserted.done ? events : []);
    if ("error" in inserted) throw inserted.error;
    return inserted.done;
  };
};
