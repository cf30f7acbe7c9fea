import { defineHandler, type Handler, publish } from "@herald/bus";
import {
  bucketOf,
  DeliverBatchV1,
  type DeviceId,
  type DurableName,
  ExpandedV1,
  ExpandV1,
  type Lane,
  type NotificationId,
  newNotificationId,
  type Platform,
  type ProjectId,
  pagesOfExpansion,
} from "@herald/contracts";
import { laneOf } from "@herald/rules";
import { eventually } from "@herald/testing";
import { startRegistryTest } from "./registry-fixture.ts";
import { type SeedDevice, seedDevices } from "./seed-devices.ts";

const platforms: readonly Platform[] = ["ios", "android", "web"];
export const many = (count: number, topics: (at: number) => string[] = () => ["news"]): SeedDevice[] =>
  Array.from({ length: count }, (_, at) => ({
    token: `t${at}`,
    platform: platforms[at % 3] ?? "ios",
    topics: topics(at),
    identifiers: { current_locale: "de" },
  }));

export const sorted = (ids: Iterable<string>) => [...ids].sort();

/** Starts a registry and collects its batches as dispatch would get them. */
export const startExpandTest = async () => {
  const registry = await startRegistryTest();
  const batches: DeliverBatchV1[] = [];
  const expanded: ExpandedV1[] = [];
  let projectId: ProjectId;

  const deliveries = (lanes: readonly Lane[]): Handler[] =>
    lanes.flatMap((lane) =>
      platforms.map((platform) =>
        defineHandler({
          durable: `dispatch-${lane}-${platform}` as DurableName,
          message: DeliverBatchV1,
          handle: async ({ data }) => void batches.push(data),
        }),
      ),
    );
  const finish = defineHandler({
    durable: "dispatch-complete-expansion",
    message: ExpandedV1,
    handle: async ({ data }) => void expanded.push(data),
  });

  let broadcast = await registry.handle(...deliveries(["broadcast"]));
  await registry.handle(...deliveries(["direct"]), finish);

  const seed = async (devices: Iterable<SeedDevice>): Promise<DeviceId[]> => {
    const ids: DeviceId[] = [];
    for await (const some of seedDevices(registry.db, projectId, devices)) ids.push(...some);
    return ids;
  };
  const message = (targets: readonly string[], rest: Partial<ExpandV1> = {}): ExpandV1 => ({
    projectId,
    notificationId: newNotificationId(new Date()),
    page: 0,
    expansion: { n: 0 },
    fromBucket: 0,
    targets: [...targets],
    lane: laneOf(targets),
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    ...rest,
  });

  let sent = 0;
  const send = (data: ExpandV1) => publish(registry.bus, ExpandV1, data, { id: `test/${++sent}` });

  /** What dispatch has received for a notification when its expansion ends. */
  const outcome = async (notificationId: NotificationId) => {
    const of = <Message extends { notificationId: string }>(list: readonly Message[]) =>
      list.filter((one) => one.notificationId === notificationId);
    return eventually(
      () => {
        const [end] = of(expanded);
        if (!end) throw new Error("not expanded");
        const own = of(batches);
        const ids = new Set(own.map(({ batchId }) => batchId));
        if (ids.size !== end.batches) throw new Error(`${ids.size} of ${end.batches} batches`);
        for (const { batchId, devices } of own) {
          const [, page, n] = batchId.split("/").map(Number);
          if (end.pages && Number(n) >= end.pages.batches)
            throw new Error(`${batchId} is not among ${end.pages.batches}`);
          for (const { id } of devices)
            if (end.pages && Math.floor(bucketOf(id) / end.pages.buckets) !== (page ?? 0) % pagesOfExpansion)
              throw new Error(`${id} is not in the page that its bucket says`);
        }
        return { end, batches: own, devices: own.flatMap(({ devices }) => devices.map(({ id }) => id)) };
      },
      { timeoutMs: 20_000 },
    );
  };
  const expand = async (targets: readonly string[], rest: Partial<ExpandV1> = {}) => {
    const data = message(targets, rest);
    await send(data);
    return outcome(data.notificationId);
  };
  const setStatus = (ids: readonly DeviceId[], status: string) =>
    registry.db
      .collection<{ _id: string }>("devices")
      .updateMany({ _id: { $in: [...ids] } }, { $set: { status, updatedAt: new Date() } });

  return {
    registry,
    batches,
    expanded,
    /** Whether the test consumes the batches of the broadcast lane. */
    takeBroadcasts: async (taken: boolean) => {
      if (taken) broadcast = await registry.handle(...deliveries(["broadcast"]));
      else await broadcast.stop(2_000);
    },
    /** The following calls use a new project. */
    newProject: async () => {
      projectId = await registry.project();
      return projectId;
    },
    /** The following calls use this project. */
    about: (known: ProjectId) => {
      projectId = known;
    },
    seed,
    message,
    send,
    outcome,
    expand,
    setStatus,
    stop: registry.stop,
  };
};

export type ExpandTest = Awaited<ReturnType<typeof startExpandTest>>;
