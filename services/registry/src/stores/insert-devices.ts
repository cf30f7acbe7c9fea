import type { OutboxEvent } from "@herald/contracts";
import { type Inserted, inOneCommand, insertEach } from "@herald/mongo";
import type { Collection } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";
import type { PendingEvents, PendingRecord } from "./pending-events.ts";

type NewDevice = { readonly document: DeviceDocument; readonly events: readonly OutboxEvent[] };
type Outcome = { readonly inserted: Inserted; readonly record: PendingRecord };

/** Inserts concurrent devices in one command and publishes their events. Resolves to false when another device of the project got the token first. */
export const insertDevices = (devices: Collection<DeviceDocument>, pending: Pick<PendingEvents, "add" | "settle">) => {
  const commit = inOneCommand<NewDevice, Outcome>(async (group) => {
    const record = await pending.add(
      group.flatMap(({ events }) => events),
      group.length,
    );
    // If this throws, some devices may be stored: the record stays, and the sweep checks.
    const outcomes = await insertEach(
      devices,
      group.map(({ document }) => document),
    );
    return outcomes.map((inserted) => ({ inserted, record }));
  });
  return async (document: DeviceDocument, events: readonly OutboxEvent[]): Promise<boolean> => {
    const { inserted, record } = await commit({ document, events });
    // Not with the group: each event carries the request id and the trace of its request.
    await pending.settle(record, "done" in inserted && inserted.done ? events : []);
    if ("error" in inserted) throw inserted.error;
    return inserted.done;
  };
};
