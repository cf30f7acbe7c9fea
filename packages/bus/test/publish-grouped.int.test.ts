import { groupedPublish, groupedPublishEvents } from "@herald/bus";
import { newNotificationId, type OutboxEvent, SendV1 } from "@herald/contracts";
import { withRequestId } from "@herald/kit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type BusTest, headersOf, isoIn, messagesIn, newProject, readStream, sendOf, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const batchesOf = (messages: Awaited<ReturnType<typeof readStream>>) =>
  new Set(messages.map((message) => headersOf(message)["Nats-Batch-Id"]?.[0]));

test("messages of the same moment share batches, each under its own id and request", async () => {
  const publish = groupedPublish(() => t.bus, SendV1);
  const sends = Array.from({ length: 150 }, () => sendOf());
  await Promise.all(
    sends.map((send, index) => withRequestId(`request-${index}`, () => publish(send, send.notificationId))),
  );
  const stored = await readStream(t, "PUSH_CMD");
  expect(stored.map(({ subject }) => subject).sort()).toEqual(sends.map((send) => SendV1.subject(send)).sort());
  for (const [index, send] of sends.entries()) {
    const message = stored.find(({ subject }) => subject === SendV1.subject(send));
    expect(message?.json()).toEqual(send);
    expect(headersOf(message)).toMatchObject({
      "Nats-Msg-Id": [`SendV1/${send.notificationId}`],
      "Herald-Request-Id": [`request-${index}`],
    });
  }
  // Two batches started at once, followed by groups of at most a hundred.
  expect(batchesOf(stored).size).toBeLessThan(10);
});

test("a batch with a repeated message stores the others", async () => {
  const publish = groupedPublish(() => t.bus, SendV1);
  const sends = Array.from({ length: 20 }, () => sendOf());
  const known = sends[10] ?? sendOf();
  await publish(known, known.notificationId);
  await Promise.all(sends.map((send) => publish(send, send.notificationId)));
  expect(await messagesIn(t, "PUSH_CMD")).toBe(20);
});

test("a full queue of waiting messages refuses more at once", async () => {
  const publish = groupedPublish(() => t.bus, SendV1, { waiting: 5 });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, () => sendOf()).map((send) => publish(send, send.notificationId)),
  );
  const refused = outcomes.filter((one) => one.status === "rejected");
  expect(refused.map(({ reason }) => reason.code)).toEqual(refused.map(() => "queue-full"));
  expect(refused.length).toBeGreaterThan(0);
  expect(await messagesIn(t, "PUSH_CMD")).toBe(20 - refused.length);
});

test("events of the same moment share a message, each with its own request, and one alone has its own", async () => {
  const publish = groupedPublishEvents(() => t.bus);
  const projectId = newProject();
  const eventOf = (): OutboxEvent<"NotificationAcceptedV1"> => {
    const notificationId = newNotificationId(new Date());
    return {
      id: `${notificationId}/accepted`,
      event: "NotificationAcceptedV1",
      subject: notificationId,
      at: new Date(),
      data: { project_id: projectId, notification_id: notificationId, at: isoIn(0) },
    };
  };
  const events = Array.from({ length: 10 }, eventOf);
  const [, ...others] = events.map((event, index) => ({ ...event, origin: { requestId: `request-${index}` } }));
  // One call may have events of several requests, and several calls share a message.
  await Promise.all([withRequestId("request-0", () => publish(events.slice(0, 1))), publish(others)]);
  const alone = eventOf();
  await withRequestId("request-x", () => publish([alone]));
  const stored = await readStream(t, "PUSH_EVENTS");
  expect(stored).toHaveLength(2);
  const batch = stored[0]?.json<{ id: string; source: string; requestid: string; data: unknown }[]>();
  expect(batch?.map(({ id, source, requestid, data }) => ({ id, source, requestid, data }))).toEqual(
    events.map(({ id, data }, index) => ({
      id,
      source: `/projects/${projectId}`,
      requestid: `request-${index}`,
      data,
    })),
  );
  expect(headersOf(stored[0])).not.toHaveProperty("Herald-Request-Id");
  expect(headersOf(stored[1])).toMatchObject({
    "ce-id": [alone.id],
    "ce-source": [`/projects/${projectId}`],
    "Nats-Msg-Id": [alone.id],
    "Herald-Request-Id": ["request-x"],
  });
  expect(stored[1]?.json()).toEqual(alone.data);
});
