import {
  type EventPosition,
  eventBounds,
  firstEventSince,
  publishEvent,
  readEvents,
  type StoredEvent,
  subscribeToEvents,
} from "@herald/bus";
import { newProjectId, newTopicId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type BusTest, startBusTest } from "./fixture.ts";

let system: BusTest;
beforeAll(async () => {
  system = await startBusTest();
});
afterEach(() => system.reset());
afterAll(() => system.stop());

const topicCreated = async (topic: string, projectId = newProjectId(new Date())) => {
  const at = new Date();
  const data = { project_id: projectId, topic_id: newTopicId(at), topic, at: at.toISOString() };
  const id = `${projectId}/${topic}`; // unique in every test: the stream remembers ids after a reset
  await publishEvent(system.bus, { id, event: "TopicCreatedV1", subject: data.topic_id, at, data });
};

test("reads a project's events in order, page after page", async () => {
  const projectId = newProjectId(new Date());
  const published = Array.from({ length: 130 }, (_, index) => `event-${index}`);
  for (const id of published) await topicCreated(id, projectId);
  await topicCreated("another project's");
  const read: string[] = [];
  for (let after: EventPosition | undefined = { sequence: 0 }; after; ) {
    const found: StoredEvent[] = await readEvents(system.bus, projectId, { after });
    read.push(...found.map(({ event }) => event?.id ?? ""));
    after = found.at(-1);
  }
  expect(read).toEqual(published.map((topic) => `${projectId}/${topic}`));
});

test("returns only the sequence of an unwanted or malformed event", async () => {
  const projectId = newProjectId(new Date());
  await topicCreated("one", projectId);
  await system.raw.nc.request(`push.evt.v1.${projectId}.topic.renamed`, "not JSON");
  await system.raw.nc.request(`push.evt.v1.${projectId}.topic.merged`, '{"from":"a later version"}');
  const { first } = await eventBounds(system.bus);
  const shown = async (types?: ReadonlySet<string>) =>
    (await readEvents(system.bus, projectId, { after: { sequence: first - 1 }, types })).map(
      ({ event }) => event?.type,
    );
  expect(await shown()).toEqual(["io.herald.topic.created.v1", undefined, "io.herald.topic.merged.v1"]);
  expect(await shown(new Set(["io.herald.topic.merged.v1", "io.herald.topic.deleted.v1"]))).toEqual([
    undefined,
    undefined,
    "io.herald.topic.merged.v1",
  ]);
  expect(await shown(new Set(["io.herald.topic.merged.v1"]))).toEqual(["io.herald.topic.merged.v1"]);
});

test("returns the bounds of the stream, and the first event since a time", async () => {
  const projectId = newProjectId(new Date());
  for (const id of ["one", "two"]) await topicCreated(id, projectId);
  const { last } = await eventBounds(system.bus);
  const since = new Date(Date.now() + 1);
  expect(await firstEventSince(system.bus, projectId, since)).toBeUndefined();
  await eventually(() => expect(new Date() > since).toBe(true));
  await topicCreated("another project's");
  await topicCreated("three", projectId);
  expect(await firstEventSince(system.bus, projectId, since)).toBe(last + 2);
  await system.raw.jsm.streams.purge("PUSH_EVENTS", { seq: last + 2 });
  expect(await eventBounds(system.bus)).toEqual({ first: last + 2, last: last + 2 });
  await system.raw.jsm.streams.purge("PUSH_EVENTS");
  expect(await eventBounds(system.bus)).toEqual({ first: last + 3, last: last + 2 });
});

test("a subscriber is called for each event of its project until it unsubscribes", async () => {
  const projectId = newProjectId(new Date());
  let heard = 0;
  const stop = subscribeToEvents(system.bus, projectId, () => heard++);
  await topicCreated("one", projectId);
  await topicCreated("another project's");
  await eventually(() => expect(heard).toBe(1));
  stop();
  await topicCreated("two", projectId);
  // The broker has answered on the same connection, so everything that it sent before has arrived.
  await eventBounds(system.bus);
  expect(heard).toBe(1);
});
