import { type EventContract, events, headerNames, newNotificationId } from "@herald/contracts";
import { expect, test } from "vitest";
import { type EncodedEvent, joinEvents } from "./publish-grouped.ts";

type Name = "NotificationAcceptedV1" | "NotificationCompletedV1" | "DeliveryAcceptedV1" | "DeliveryFailedV1";
const verbs = {
  acc: "NotificationAcceptedV1",
  del: "DeliveryAcceptedV1",
  fail: "DeliveryFailedV1",
  end: "NotificationCompletedV1",
} as const satisfies Record<string, Name>;
type Verb = keyof typeof verbs;

/** An event, such as `acc:1`, about the first notification; `size` is that of its data. */
const encoded = (text: string, { project = "prj_1", size = 2 } = {}): EncodedEvent => {
  const [verb, entity = ""] = text.split(":") as [Verb, string];
  const contract = events[verbs[verb]] as unknown as EventContract;
  return {
    pattern: contract.pattern,
    subject: contract.filter.replace("*", project),
    body: JSON.stringify({ id: "x".repeat(Math.max(0, size - 9)) }),
    messageId: `${project}/${text}`,
    headers: {
      [headerNames.ceSpecVersion]: "1.0",
      [headerNames.ceId]: text,
      [headerNames.ceSource]: `/projects/${project}`,
      [headerNames.ceType]: contract.ceType,
      [headerNames.ceTime]: "2030-01-01T00:00:00.000Z",
      [headerNames.ceSubject]: entity,
      [headerNames.contentType]: "application/json",
    },
    origin: {},
  };
};

/** The ids of the events of each message. */
const idsOf = (messages: readonly EncodedEvent[]): string[] =>
  messages.map(({ headers, body }) =>
    headers[headerNames.contentType] === "application/json"
      ? (headers[headerNames.ceId] ?? "")
      : (JSON.parse(body) as { id: string }[]).map(({ id }) => id).join(" "),
  );
const joined = (text: string): string[] => idsOf(joinEvents(text.split(" ").map((one) => encoded(one))));

test("an event without others stays as it is", () => {
  const [one, two] = [encoded("acc:1"), encoded("end:2")];
  expect(joinEvents([one, two])).toEqual([one, two]);
  expect(joinEvents([])).toEqual([]);
});

test("events of one type become a JSON batch of CloudEvents, each with its own request", () => {
  const [message, ...others] = joinEvents([
    encoded("acc:1"),
    { ...encoded("acc:2"), origin: { requestId: "request-7" } },
  ]);
  expect(others).toEqual([]);
  const about = { specversion: "1.0", source: "/projects/prj_1", type: "io.herald.notification.accepted.v1" };
  const rest = { time: "2030-01-01T00:00:00.000Z", data: { id: "" } };
  expect(message?.headers).toEqual({ "content-type": "application/cloudevents-batch+json" });
  expect(message?.subject).toBe("push.evt.v1.prj_1.notification.accepted");
  expect(JSON.parse(message?.body ?? "")).toEqual([
    { ...about, id: "acc:1", subject: "1", ...rest },
    { ...about, id: "acc:2", subject: "2", requestid: "request-7", ...rest },
  ]);
});

test("only events of one project and a batched type share a message", () => {
  const others = [encoded("acc:1"), encoded("acc:2", { project: "prj_2" }), encoded("fail:3"), encoded("fail:4")];
  expect(joinEvents(others)).toEqual(others);
});

test.each([
  ["sends of the same moment", "acc:1 del:1 end:1 acc:2 del:2 end:2", ["acc:1 acc:2", "del:1 del:2", "end:1 end:2"]],
  ["the end of an earlier send", "end:0 acc:1 del:1 end:1", ["acc:1", "del:1", "end:0 end:1"]],
  [
    "an end whose failures are alone",
    "acc:1 fail:1 end:1 acc:2 fail:2 end:2",
    ["acc:1 acc:2", "fail:1", "fail:2", "end:1 end:2"],
  ],
  ["a repeat", "acc:1 acc:2 acc:1", ["acc:1 acc:2"]],
])("keeps the order of events about one entity: %s", (_, given, expected) => {
  expect(joined(given)).toEqual(expected);
});

test("whatever the order, events about one entity stay in order, and none is lost", () => {
  const kinds = Object.keys(verbs) as Verb[];
  for (let round = 0; round < 100; round++) {
    // Different ids of few entities, so that most orders cannot be joined completely.
    const given = Array.from({ length: 30 }, (_, index) => {
      const kind = kinds[Math.floor(Math.random() * kinds.length)];
      return encoded(`${kind}:${Math.floor(Math.random() * 4)}:${index}`);
    });
    const flat = idsOf(joinEvents(given)).flatMap((ids) => ids.split(" "));
    const ids = given.map(({ headers }) => headers[headerNames.ceId] ?? "");
    expect(flat.toSorted()).toEqual(ids.toSorted());
    const of = (all: readonly string[], entity: string) => all.filter((id) => id.split(":")[1] === entity);
    for (const entity of "0123") expect(of(flat, entity)).toEqual(of(ids, entity));
  }
});

test("a message has at most a hundred events and 128 KiB, whatever characters they have", () => {
  const ids = Array.from({ length: 250 }, () => newNotificationId(new Date()));
  const small = joinEvents(ids.map((id) => encoded(`acc:${id}`)));
  expect(idsOf(small).map((text) => text.split(" ").length)).toEqual([100, 100, 50]);
  const wide = (id: string): EncodedEvent => ({
    ...encoded(`acc:${id}`),
    body: JSON.stringify({ user: "ż🐢".repeat(4_000) }),
  });
  const large = joinEvents(ids.slice(0, 20).map(wide));
  expect(large.length).toBeGreaterThan(2);
  for (const { body } of large) expect(Buffer.byteLength(body)).toBeLessThanOrEqual(131_072);
  const [alone] = joinEvents([encoded("del:1", { size: 500_000 }), encoded("del:2")]);
  expect(alone).toEqual(encoded("del:1", { size: 500_000 }));
});

test("the message id is that of the same events only", () => {
  const idOf = (...texts: string[]) => joinEvents(texts.map((one) => encoded(one)))[0]?.messageId;
  expect(idOf("acc:1", "acc:2")).toBe(idOf("acc:1", "acc:2"));
  expect(
    new Set([idOf("acc:1", "acc:2"), idOf("acc:1", "acc:3"), idOf("acc:1"), idOf("acc:1", "acc:2", "acc:3")]).size,
  ).toBe(4);
});
