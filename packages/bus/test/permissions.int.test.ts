import {
  closeBus,
  connectBus,
  consume,
  consumersReady,
  defineHandler,
  getDeadLetter,
  lastMessage,
  listDeadLetters,
  openBucket,
  publish,
  replayDeadLetter,
} from "@herald/bus";
import { ExpandV1, SendV1, TokenRecord } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeLetter } from "./dead-letter-fixture.ts";
import { type BusTest, expandOf, messagesIn, newProject, sendOf, startBusTest } from "./fixture.ts";

/** All that a service which consumes one durable, publishes one command and reads two buckets needs of the broker. */
const service = [
  "push.cmd.v1.registry.expand.>",
  "push.dlq.v1.dispatch-start",
  "$JS.API.CONSUMER.INFO.PUSH_CMD.dispatch-start",
  "$JS.API.CONSUMER.MSG.NEXT.PUSH_CMD.dispatch-start",
  "$JS.ACK.PUSH_CMD.dispatch-start.>",
  "$JS.ACK.*.*.PUSH_CMD.dispatch-start.>",
  "$JS.API.DIRECT.GET.PUSH_CMD.push.cmd.v1.dispatch.send.>",
  "$JS.API.DIRECT.GET.KV_push_tokens.$KV.push_tokens.>",
  "$JS.API.STREAM.INFO.KV_push_tokens",
  "$JS.API.CONSUMER.CREATE.KV_push_tokens.>",
  "$JS.API.CONSUMER.DELETE.KV_push_tokens.>",
  "$JS.API.CONSUMER.INFO.KV_push_tokens.*",
  "$JS.API.CONSUMER.MSG.NEXT.KV_push_tokens.*",
];

/** What whoever shows and replays dead letters needs, here those of sends alone. */
const undertaker = [
  "$JS.API.STREAM.INFO.PUSH_DLQ",
  "$JS.API.DIRECT.GET.PUSH_DLQ",
  "$JS.API.DIRECT.GET.KV_push_replays",
  "$JS.API.DIRECT.GET.KV_push_replays.>",
  "$KV.push_replays.>",
  "push.cmd.v1.dispatch.send.>",
];
const users = `authorization { users: [
  { user: admin, password: admin },
  { user: service, password: service, permissions: {
      publish: ${JSON.stringify(service)}, subscribe: ["_INBOX_service.>"] } }
  { user: undertaker, password: undertaker, permissions: {
      publish: ${JSON.stringify(undertaker)}, subscribe: ["_INBOX_undertaker.>"] } }
] }
no_auth_user: admin`;

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest({ extraConfig: users });
});
afterAll(() => t.stop());

const asService = () =>
  connectBus({
    url: t.broker.url,
    name: "service",
    user: "service",
    password: "service",
    inboxPrefix: "_INBOX_service",
    log: t.log,
  });

describe("a service's own user", () => {
  test("needs no more than its subjects, its durable and its buckets", async () => {
    const bus = await asService();
    const seen: string[] = [];
    const consuming = await consume(bus, [
      defineHandler({
        durable: "dispatch-start",
        message: SendV1,
        async handle({ data, id }) {
          expect(await lastMessage(bus, "PUSH_CMD", SendV1.subject(data), SendV1)).toMatchObject({ data });
          await publish(bus, ExpandV1, expandOf(data.projectId), { id });
          seen.push(id);
          if (seen.length === 2) throw new HeraldError("project-not-found", "gone");
        },
      }),
    ]);
    const tokens = openBucket(bus, "push_tokens", TokenRecord);
    const watched: string[] = [];
    const watching = tokens.watch(({ key }) => watched.push(key));
    await openBucket(t.bus, "push_tokens", TokenRecord).put("a", {
      id: "tok_06bq4ghm31tz5d2ns8y7k9w0ac",
      projectId: newProject(),
      scopes: [],
    });
    for (const data of [sendOf(), sendOf()]) await publish(t.bus, SendV1, data, { id: data.notificationId });
    await eventually(() => {
      expect(seen).toHaveLength(2);
      expect(watched).toEqual(["a"]);
      expect(consumersReady(consuming)).toBe(true);
    });
    expect(await tokens.get("a")).toBeDefined();
    await eventually(async () => expect(await messagesIn(t, "PUSH_DLQ")).toBe(1));
    await watching.stop();
    await consuming.stop(1_000);
    await closeBus(bus);
    expect(t.logged.filter(({ msg }) => msg === "NATS reports an error")).toEqual([]);
  });

  test("may do nothing else, and hears so at once", async () => {
    const bus = await asService();
    const data = sendOf();
    await expect(publish(bus, SendV1, data, { id: data.notificationId })).rejects.toThrow(/permission/i);
    await expect(openBucket(bus, "push_tokens", TokenRecord).delete("a")).rejects.toThrow(/permission/i);
    await closeBus(bus);
  });

  test("with a wrong password is told so, and does not wait for ever", async () => {
    const refused = connectBus({ url: t.broker.url, name: "service", user: "service", password: "wrong", log: t.log });
    await expect(refused).rejects.toThrow('NATS refuses the user "service"');
  });
});

test("dead letters are shown and replayed with no more than their stream, the bucket of replays and where they came from", async () => {
  const bus = await connectBus({
    url: t.broker.url,
    name: "undertaker",
    user: "undertaker",
    password: "undertaker",
    inboxPrefix: "_INBOX_undertaker",
    log: t.log,
  });
  const facts = { "Herald-Dead-Subject": SendV1.subject(sendOf()) };
  const id = await writeLetter(t, "dispatch-start", facts);
  expect((await replayDeadLetter(bus, id, { attempt: "1" })).letter.replays).toBe(1);
  expect((await replayDeadLetter(bus, id, { attempt: "2" })).letter.replays).toBe(2);
  const shown = await listDeadLetters(bus, { by: "page", page: 1, perPage: 100 });
  expect(shown.data.at(-1)).toEqual(await getDeadLetter(bus, id));
  await closeBus(bus);
});
