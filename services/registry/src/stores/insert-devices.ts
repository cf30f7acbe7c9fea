import type { OutboxEvent } from "@herald/contracts";
import { type Inserted, inOneCommand, insertEach, withinDeadline } from "@herald/mongo";
import type { Collection } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";
import type { PendingEvents, PendingRecord } from "./pending-events.ts";

type NewDevice = { readonly document: DeviceDocument; readonly events: readonly OutboxEvent[] };
type Outcome = { readonly inserted: Inserted; readonly record: PendingRecord };

/** Inserts devices and publishes their events. A result is false if another device of the project has the token or the id. */
export const insertDevices = (devices: Collection<DeviceDocument>, pending: Pick<PendingEvents, "add" | "settle">) => {
  /** `parts`: how often the record will be settled. If this throws, some devices may be stored: the record stays for the sweep. */
  const write = async (group: readonly NewDevice[], parts: number) => {
    const events = group.flatMap((one) => one.events);
    const record = await pending.add(events, parts);
    const documents = group.map(({ document }) => document);
    return { record, outcomes: await insertEach(devices, documents) };
  };

  const commit = inOneCommand<NewDevice, Outcome>(async (group) => {
    const { record, outcomes } = await write(group, group.length);
    return outcomes.map((inserted) => ({ inserted, record }));
  });

  const isDone = (inserted: Inserted | undefined): boolean =>
    inserted !== undefined && "done" in inserted && inserted.done;

  return {
    /** Shares a command with concurrent inserts. */
    insert: async (device: NewDevice): Promise<boolean> => {
      const { inserted, record } = await commit(device);
      // Not for the whole group: each event carries the request id and the trace of its request.
      await pending.settle(record, isDone(inserted) ? device.events : []);
      if ("error" in inserted) throw inserted.error;
      return inserted.done;
    },

    /** Inserts all in one command. */
    insertAll: async (group: readonly NewDevice[]): Promise<boolean[]> => {
      if (group.length === 0) return [];
      const { record, outcomes } = await withinDeadline(write(group, 1));
      const stored = group.filter((_, index) => isDone(outcomes[index]));
      await pending.settle(
        record,
        stored.flatMap((one) => one.events),
      );
      for (const inserted of outcomes) if ("error" in inserted) throw inserted.error;
      return outcomes.map(isDone);
    },
  };
};
