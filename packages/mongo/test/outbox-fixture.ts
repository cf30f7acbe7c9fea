import { createLogger } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import type { Collection } from "mongodb";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { ensureIndexes } from "../src/ensure-indexes.ts";
import { createOutbox, type Outbox, type OutboxOptions, outboxIndex } from "../src/outbox.ts";

type Entry = { id: string; at: Date; what: string };
type Device = { _id: string; projectId: string; deletedAt?: Date; outbox?: Entry[] };

export const entry = (id: string, at = new Date()): Entry => ({ id, at, what: "registered" });
export const device = (id: string, ...entries: Entry[]): Device => ({ _id: id, projectId: "p", outbox: entries });

/** A database for the tests of a file. Outboxes write to `published` and `lines`, which are empty before each test. */
export function useOutboxes() {
  let database: FreshDatabase;
  let devices: Collection<Device>;
  const published: string[] = [];
  const lines: string[] = [];
  const outboxes: Outbox<Entry>[] = [];

  beforeAll(async () => {
    database = await freshDatabase();
    devices = database.client.db(database.name).collection<Device>("devices");
    await ensureIndexes(devices, [outboxIndex]);
  });
  beforeEach(async () => {
    published.length = 0;
    lines.length = 0;
    await devices.deleteMany({});
  });
  afterEach(async () => {
    await Promise.all(outboxes.splice(0).map((outbox) => outbox.stop()));
  });
  afterAll(() => database.drop());

  const create = (options: Partial<OutboxOptions<Entry>> = {}): Outbox<Entry> => {
    const outbox = createOutbox<Entry>({
      collections: [{ collection: devices, tombstone: "deletedAt" }],
      publish: async (entry) => {
        published.push(entry.id);
      },
      log: createLogger({ service: "test", level: "info", destination: { write: (line) => lines.push(line) } }),
      ...options,
    });
    outboxes.push(outbox);
    return outbox;
  };
  const stored = (id: string) => devices.findOne({ _id: id, projectId: "p" });
  return { published, lines, create, stored, devices: () => devices };
}
