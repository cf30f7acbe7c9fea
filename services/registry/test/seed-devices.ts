import {
  type AppData,
  type DeviceId,
  newDeviceId,
  newTopicId,
  type Platform,
  type ProjectId,
  type WebPushKeys,
} from "@herald/contracts";
import type { Db } from "mongodb";
import { newDevice } from "../src/domain/device-change.ts";
import type { UserChange } from "../src/domain/device-state.ts";
import { putToken } from "../src/domain/further-tokens.ts";
import { type DeviceDocument, newDeviceDocument } from "../src/stores/device-document.ts";
import { deviceCollection } from "../src/stores/device-store.ts";
import { projectCollection } from "../src/stores/project-store.ts";
import { createZoneList } from "../src/stores/project-zones.ts";
import { topicCollection } from "../src/stores/topic-store.ts";

export type SeedDevice = {
  readonly token: string;
  readonly platform: Platform;
  readonly topics?: readonly string[];
  readonly metadata?: AppData;
  readonly identifiers?: AppData;
  readonly keys?: WebPushKeys;
  readonly user?: UserChange;
  readonly capabilities?: readonly string[];
  /** The token of a push type or an activity. */
  readonly further?: { readonly key: string; readonly token: string };
};

/** Devices per write. Larger writes are not faster, and FerretDB refuses 25,000. */
const atATime = 2_000;
/** Concurrent writes: the database has more than one core. */
const concurrent = 4;

/**
 * Writes many devices into registry's database as their registrations would, but without events and credentials: for benchmarks and
 * tests. Creates missing topics. The tokens must be new. Yields the ids after each 2,000 written devices.
 */
export async function* seedDevices(
  db: Db,
  projectId: ProjectId,
  devices: Iterable<SeedDevice>,
  now: () => Date = () => new Date(),
): AsyncGenerator<DeviceId[]> {
  const collection = deviceCollection(db);
  const listed = createZoneList(projectCollection(db));
  const known = new Set<string>();
  let waiting: DeviceDocument[] = [];
  const writing: Promise<DeviceId[]>[] = [];
  const write = async (): Promise<DeviceId[]> => {
    const written = waiting;
    waiting = [];
    await listed(written);
    if (written.length > 0) await collection.insertMany(written, { ordered: false });
    return written.map(({ _id }) => _id);
  };
  for (const { platform, topics = [], further, ...device } of devices) {
    const at = now();
    for (const topic of topics) if (!known.has(topic)) await ensureTopic(db, projectId, topic, at);
    for (const topic of topics) known.add(topic);
    const plan = newDevice(platform, { ...device, topics }, at);
    if (!("state" in plan)) throw new Error("problems" in plan ? plan.problems.join("; ") : "its user token was used");
    const state = further ? putToken(plan.state, further, at) : plan.state;
    if (state === "full") throw new Error("a new device has room");
    waiting.push(newDeviceDocument(projectId, newDeviceId(at), state, { credentialHash: "", at }));
    if (waiting.length < atATime) continue;
    writing.push(write());
    if (writing.length >= concurrent) yield* await Promise.all(writing.splice(0));
  }
  yield* await Promise.all([...writing, write()]);
}

const ensureTopic = async (db: Db, projectId: ProjectId, name: string, at: Date): Promise<void> => {
  await topicCollection(db).updateOne(
    { projectId, name },
    { $setOnInsert: { _id: newTopicId(at), createdAt: at } },
    { upsert: true },
  );
};
