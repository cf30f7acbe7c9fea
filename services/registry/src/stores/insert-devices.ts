import type { OutboxEvent } from "@herald/contracts";
import { type Inserted, inOneCommand, insertEach, withinDeadline } from "@herald/mongo";
import type { Collection } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";
import type { PendingEvents, PendingRecord } from "./pending-events.ts";
import type { ZoneList } from "./project-zones.ts";
import type { UserPreferenceStore } from "./user-preference-store.ts";

type NewDevice = { readonly document: DeviceDocument; readonly events: readonly OutboxEvent[] };
type Outcome = { readonly inserted: Inserted; readonly record: PendingRecord };

/** Inserts devices and publishes their events. A result is false if another device of the project has the token or the id. */
export const insertDevices = (
  devices: Collection<DeviceDocument>,
  {
    pending,
    listed,
    userPreferences,
  }: {
    readonly pending: Pick<PendingEvents, "add" | "settle">;
    readonly listed: ZoneList;
    readonly userPreferences: Pick<UserPreferenceStore, "copyFor" | "compare">;
  },
) => {
  /** With what the user of a device has chosen. */
  const withPreferences = async (document: DeviceDocument): Promise<DeviceDocument> => {
    if (document.userId === undefined) return document;
    const { userPreferences: choices, userPreferencesVersion: version } = await userPreferences.copyFor(
      document.projectId,
      document.userId,
    );
    if (choices === undefined || version === undefined) return document;
    return { ...document, userPreferences: choices, userPreferencesVersion: version };
  };

  /** `parts`: how often the record will be settled. If this throws, some devices may be stored: the record stays for the sweep. */
  const write = async (group: readonly NewDevice[], parts: number) => {
    const events = group.flatMap((one) => one.events);
    const documents = await Promise.all(group.map(({ document }) => withPreferences(document)));
    await listed(documents);
    const record = await pending.add(events, parts);
    const outcomes = await insertEach(devices, documents);
    await Promise.all(documents.map((document) => document.userId !== undefined && userPreferences.compare(document)));
    return { record, outcomes };
  };

  const commit = inOneCommand<NewDevice, Outcome>(async (group) => {
    const { record, outcomes } = await write(group, group.length);
    return outcomes.map((inserted) => ({ inserted, record }));
  });

  return {
    /** Shares a command with concurrent inserts. */
    insert: async (device: NewDevice): Promise<boolean> => {
      const { inserted, record } = await commit(device);
      // Not for the whole group: each event carries the request id and the trace of its request.
      await pending.settle(record, inserted.done ? device.events : []);
      if (inserted.error !== undefined) throw inserted.error;
      return inserted.done;
    },

    /** Inserts all in one command. */
    insertAll: async (group: readonly NewDevice[]): Promise<boolean[]> => {
      if (group.length === 0) return [];
      const { record, outcomes } = await withinDeadline(write(group, 1));
      const events = group.flatMap((one, index) => (outcomes[index]?.done ? one.events : []));
      await pending.settle(record, events);
      for (const { error } of outcomes) if (error !== undefined) throw error;
      return outcomes.map(({ done }) => done);
    },
  };
};
