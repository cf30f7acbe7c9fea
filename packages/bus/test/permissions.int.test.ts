import {
  closeBus,
  connectBus,
  consume,
  countMessages,
  defineHandler,
  ensureStreams,
  eventBounds,
  getDeadLetter,
  lastMessage,
  listDeadLetters,
  openBucket,
  publish,
  readEvents,
  replayDeadLetter,
  subscribeToEvents,
} from "@herald/bus";
import { ExpandV1, newNotificationId, SendV1, TokenRecord } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { AckPolicy, jetstream } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectionOf } from "../src/connect.ts";
import { writeLetter } from "./dead-letter-fixture.ts";
import { type BusTest, expandOf, messagesIn, newProject, sendOf, startBusTest } from "./fixture.ts";
import { connectAs, natsLogin, onEmptyBroker } from "./nats-login.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

const record = () => ({ id: "tok_06bq4ghm31tz5d2ns8y7k9w0ac", projectId: newProject(), scopes: [] }) as const;

describe("a service's own user", () => {
  test("consumes its durables, reads a stored command, publishes and dead-letters", async () => {
    const bus = await connectAs(t, "dispatch");
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
    for (const data of [sendOf(), sendOf()]) await publish(t.bus, SendV1, data, { id: data.notificationId });
    await eventually(async () => {
      expect(seen).toHaveLength(2);
      expect(consuming.ready()).toBe(true);
      expect(await messagesIn(t, "PUSH_DLQ")).toBe(1);
    });
    await consuming.stop(1_000);
    await closeBus(bus);
    expect(t.logged.filter(({ msg }) => msg === "NATS reports an error")).toEqual([]);
  });

  test("watches the buckets that it replicates", async () => {
    const [bus, writer] = [await connectAs(t, "gateway"), await connectAs(t, "registry")];
    const watched: string[] = [];
    const tokens = openBucket(bus, "push_tokens", TokenRecord);
    const watching = tokens.watch(({ key }) => watched.push(key));
    await openBucket(writer, "push_tokens", TokenRecord).put("a", { ...record(), scopes: [] });
    await eventually(() => expect(watched).toEqual(["a"]));
    expect(await tokens.get("a")).toBeDefined();
    await watching.stop();
    for (const one of [bus, writer]) await closeBus(one);
    expect(t.logged.filter(({ msg }) => msg === "NATS reports an error")).toEqual([]);
  });

  test("counts the commands of a project that wait, each of several thousand", async () => {
    const bus = await connectAs(t, "gateway");
    const [one, other] = [newProject(), newProject()];
    const max = 15_000; // the list of their subjects exceeds the size of one message
    const subject = () => `push.cmd.v1.dispatch.send.${one}.${newNotificationId(new Date())}`;
    for (let at = 0; at < max; at += 1_000) {
      for (let next = 1; next < 1_000; next++) t.raw.nc.publish(subject(), "{}");
      await jetstream(t.raw.nc).publish(subject(), "{}"); // the broker stores them in order
    }
    const sent = sendOf(other);
    await publish(t.bus, SendV1, sent, { id: sent.notificationId });
    await publish(t.bus, ExpandV1, expandOf(other), { id: sent.notificationId });
    const count = (projectId: string) => countMessages(bus, "PUSH_CMD", `push.cmd.v1.*.*.${projectId}.>`);
    expect(await Promise.all([count(one), count(other), count(newProject())])).toEqual([max, 2, 0]);
    await closeBus(bus);
  });

  test("reads the events of a project and subscribes to new ones", async () => {
    const bus = await connectAs(t, "gateway");
    const projectId = newProject();
    let heard = 0;
    const deaf = subscribeToEvents(bus, projectId, () => heard++);
    const { last } = await eventBounds(bus);
    const subject = `push.evt.v1.${projectId}.notification.opened`;
    for (const n of [1, 2, 3]) await jetstream(t.raw.nc).publish(subject, JSON.stringify({ n }));
    const found = await readEvents(bus, projectId, { after: { sequence: last } });
    expect(found.map(({ event }) => event?.data)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await eventually(() => expect(heard).toBe(3));
    deaf();
    await closeBus(bus);
  });

  test("may do nothing else, and gets an error at once", async () => {
    const bus = await connectAs(t, "analytics");
    const data = sendOf();
    await expect(publish(bus, SendV1, data, { id: data.notificationId })).rejects.toThrow(/permission/i);
    await expect(openBucket(bus, "push_tokens", TokenRecord).delete("a")).rejects.toThrow(/permission/i);
    await closeBus(bus);
  });

  test("with a wrong password gets an error instead of waiting", async () => {
    const login = { ...natsLogin(t, "registry"), password: "wrong" };
    const refused = connectBus({ url: t.broker.url, name: "registry", ...login, log: t.log });
    await expect(refused).rejects.toThrow('NATS refuses the user "herald-registry"');
  });
});

test("the gateway's user lists and replays dead letters", async () => {
  const bus = await connectAs(t, "gateway");
  const facts = { "Herald-Dead-Subject": SendV1.subject(sendOf()) };
  const id = await writeLetter(t, "dispatch-start", facts);
  expect((await replayDeadLetter(bus, id, { attempt: "1" })).letter.replays).toBe(1);
  expect((await replayDeadLetter(bus, id, { attempt: "2" })).letter.replays).toBe(2);
  const shown = await listDeadLetters(bus, { by: "page", page: 1, perPage: 100 });
  expect(shown.data.at(-1)).toEqual(await getDeadLetter(bus, id));
  await closeBus(bus);
});

test("the bootstrap step's user makes and changes everything that is declared", async () => {
  await onEmptyBroker("bootstrap", t.log, async (bus) => {
    const options = { replicas: 1, sizeFactor: 0.01 } as const;
    expect(await ensureStreams(bus, options)).toMatchObject({ problems: [] });
    const consumer = {
      durable_name: "consumers-mine",
      ack_policy: AckPolicy.Explicit,
      filter_subject: "push.evt.v1.*.>",
    };
    await connectionOf(bus).jsm.consumers.add("PUSH_EVENTS", consumer);
    expect(await ensureStreams(bus, { ...options, sizeFactor: 0.02 })).toMatchObject({ created: [], problems: [] });
  });
});
