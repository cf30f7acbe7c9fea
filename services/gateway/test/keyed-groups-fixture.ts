import { randomUUID } from "node:crypto";
import { type Bucket, consume, defineHandler, openBucket } from "@herald/bus";
import {
  type GroupedSend,
  IdempotencyRecord,
  type NotificationId,
  newNotificationId,
  readGroup,
  SendGroupV1,
  SendOneV1,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { createApp } from "../src/app.ts";
import {
  type Answered,
  callAt,
  configOf,
  type GatewayTest,
  startGatewayTest,
  type TestProject,
} from "./gateway-fixture.ts";

export const newKeys = (count: number): string[] => Array.from({ length: count }, () => randomUUID());
export const idOf = ({ body }: Answered): NotificationId => body.data.id;

/** A gateway for the tests of a file, whose sends carry an Idempotency-Key each, and what it publishes. */
export function useKeyedGroups() {
  let system: GatewayTest;
  let project: TestProject;
  /** Moves only by `offset`. Real time would free keys of seemingly interrupted requests after ten seconds, and a step may take that long. */
  const began = Date.now();
  let offset = 0;
  const now = () => new Date(began + offset);
  let records: Bucket<IdempotencyRecord>;
  /** The published sends, by the kind of their message. */
  const groups: { groupId: string; sends: GroupedSend[] }[] = [];
  const alone: SendOneV1[] = [];
  let stop: () => Promise<void>;
  /** Called as soon as a message of the kind is stored. */
  let onStored: (what: "key" | "group") => void = () => {};

  beforeAll(async () => {
    system = await startGatewayTest({ now });
    project = await system.project();
    records = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
    const handlers = [
      defineHandler({
        durable: "dispatch-send-groups",
        message: SendGroupV1,
        handle: async ({ data }) => {
          const { sends } = readGroup(data);
          groups.push({ groupId: data.groupId, sends });
          for (const one of sends) system.peers.store(one);
          onStored("group");
        },
      }),
      defineHandler({
        durable: "dispatch-single-sends",
        message: SendOneV1,
        handle: async ({ data }) => void alone.push(data),
      }),
    ];
    const consuming = await consume(system.bus, handlers);
    await eventually(() => expect(consuming.ready()).toBe(true));
    stop = () => consuming.stop(2_000);
  });
  afterAll(async () => {
    await stop();
    await system.stop();
  });
  afterEach(async () => {
    offset = 0;
    onStored = () => {};
    await system.proxy.heal();
    await system.ready();
  });

  const send = (key: string, at = system.address()): Promise<Answered> =>
    callAt(at, "POST /api/v1/notifications", {
      token: project.token,
      body: { notification: { title: key, targets: [`token:${key}`] } },
      headers: { "idempotency-key": key },
    });

  /** The published messages of the sends with these titles. */
  const travelled = (keys: readonly string[]) => {
    const wanted = new Set(keys);
    const of = (sends: readonly { content: { title?: string | undefined }; notificationId: NotificationId }[]) =>
      sends
        .filter(({ content: { title = "" } }) => wanted.has(title))
        .map((one) => [one.content.title, one.notificationId]);
    return { grouped: of(groups.flatMap(({ sends }) => sends)), alone: of(alone) };
  };

  const placeOf = async (id: NotificationId): Promise<string> => {
    let place: string | undefined;
    const watching = records.watch(({ key, value }) => {
      if (value?.id === id) place = key;
    });
    await eventually(() => expect(watching.ready()).toBe(true));
    await watching.stop();
    if (place === undefined) throw new Error(`no record is of ${id}`);
    return place;
  };

  /** Gives the record of an accepted send another id, as if its gateway had crashed before it published the send. Resolves to that id. */
  const unpublish = async (accepted: NotificationId): Promise<NotificationId> => {
    const place = await placeOf(accepted);
    const id = newNotificationId(new Date());
    const record = (await records.get(place))?.value;
    if (record !== undefined) await records.put(place, { ...record, id });
    return id;
  };

  /** Repeats, ten seconds after the first attempts, until all requests are accepted, and returns their ids. */
  const healed = async (keys: readonly string[], at?: string): Promise<NotificationId[]> => {
    offset = 10_001;
    return eventually(async () => {
      const answers = await Promise.all(keys.map((key) => send(key, at)));
      expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 202));
      return answers.map(idOf);
    });
  };

  /** Every send was published, each of its messages with the final id of its request. */
  const expectOneIdEach = async (keys: readonly string[], ids: readonly NotificationId[]) => {
    await eventually(() => {
      const { grouped, alone: single } = travelled(keys);
      const found = new Map<string, Set<string>>();
      for (const [title = "", id = ""] of [...grouped, ...single])
        found.set(title, (found.get(title) ?? new Set()).add(id));
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(keys.map((key, at) => [key, new Set([ids[at]])])));
    });
    expect(new Set(ids).size).toBe(keys.length);
  };

  /** Another gateway of the same system, and its address. */
  const startAnother = async () => {
    const app = createApp(configOf(system.broker.url, system.broker.loginOf("gateway")), { now });
    await app.start();
    await eventually(async () => expect((await callAt(app.address(), "GET /readyz")).status).toBe(200));
    return app;
  };

  return {
    system: () => system,
    project: () => project,
    records: () => records,
    /** Calls `watcher` until the end of the test as soon as a message of the kind is stored. */
    watchStored: (watcher: typeof onStored) => {
      onStored = watcher;
    },
    groups,
    send,
    travelled,
    placeOf,
    unpublish,
    healed,
    expectOneIdEach,
    startAnother,
  };
}
