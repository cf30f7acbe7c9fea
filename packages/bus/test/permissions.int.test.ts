import {
  closeBus,
  connectBus,
  consume,
  consumersReady,
  defineHandler,
  ensureStreams,
  getDeadLetter,
  lastMessage,
  listDeadLetters,
  openBucket,
  publish,
  replayDeadLetter,
} from "@herald/bus";
import { type BusUserName, busUsers, ExpandV1, SendV1, TokenRecord } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually, natsRefusal } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeLetter } from "./dead-letter-fixture.ts";
import { type BusTest, expandOf, messagesIn, newProject, sendOf, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

const loginOf = (name: BusUserName) => {
  const { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password } = t.broker.loginOf(name);
  return { ...(user && { user }), ...(password && { password }) };
};
const nativeLogin = (name: BusUserName) => {
  const { user, password } = loginOf(name);
  return { ...(user && { user, pass: password ?? "" }) };
};
const connectAs = (name: BusUserName) => {
  const { inboxPrefix } = busUsers[name];
  return connectBus({ url: t.broker.url, name, ...loginOf(name), inboxPrefix, log: t.log });
};
const record = () => ({ id: "tok_06bq4ghm31tz5d2ns8y7k9w0ac", projectId: newProject(), scopes: [] }) as const;

describe("a service's own user", () => {
  test("consumes its durables, reads a stored command, publishes, and buries what can never succeed", async () => {
    const bus = await connectAs("dispatch");
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
      expect(consumersReady(consuming)).toBe(true);
      expect(await messagesIn(t, "PUSH_DLQ")).toBe(1);
    });
    await consuming.stop(1_000);
    await closeBus(bus);
    expect(t.logged.filter(({ msg }) => msg === "NATS reports an error")).toEqual([]);
  });

  test("watches the buckets that it mirrors", async () => {
    const [bus, writer] = [await connectAs("gateway"), await connectAs("registry")];
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

  test("may do nothing else, and hears so at once", async () => {
    const bus = await connectAs("analytics");
    const data = sendOf();
    await expect(publish(bus, SendV1, data, { id: data.notificationId })).rejects.toThrow(/permission/i);
    await expect(openBucket(bus, "push_tokens", TokenRecord).delete("a")).rejects.toThrow(/permission/i);
    await closeBus(bus);
  });

  test("with a wrong password is told so, and does not wait for ever", async () => {
    const login = { ...loginOf("registry"), password: "wrong" };
    const refused = connectBus({ url: t.broker.url, name: "registry", ...login, log: t.log });
    await expect(refused).rejects.toThrow('NATS refuses the user "herald-registry"');
  });
});

test("dead letters are shown and replayed by the gateway", async () => {
  const bus = await connectAs("gateway");
  const facts = { "Herald-Dead-Subject": SendV1.subject(sendOf()) };
  const id = await writeLetter(t, "dispatch-start", facts);
  expect((await replayDeadLetter(bus, id, { attempt: "1" })).letter.replays).toBe(1);
  expect((await replayDeadLetter(bus, id, { attempt: "2" })).letter.replays).toBe(2);
  const shown = await listDeadLetters(bus, { by: "page", page: 1, perPage: 100 });
  expect(shown.data.at(-1)).toEqual(await getDeadLetter(bus, id));
  await closeBus(bus);
});

const restricted = ["gateway", "registry", "dispatch", "analytics", "bootstrap", "opens"] as const;
type Restricted = (typeof restricted)[number];

const refusal = (name: BusUserName, line: string) => natsRefusal({ url: t.broker.url, ...loginOf(name) }, line);
const subscribing = (name: BusUserName, subject: string) => refusal(name, `SUB ${subject} 1`);
const publishing = (name: BusUserName, subject: string) =>
  refusal(name, `PUB ${subject} ${busUsers[name].inboxPrefix}.1 0\r\n`);

/** What nobody but a person may do. */
const everyone = [
  "$JS.API.INFO",
  "$JS.API.STREAM.DELETE.PUSH_EVENTS",
  "$JS.API.STREAM.PURGE.PUSH_CMD",
  "$JS.API.STREAM.PURGE.KV_push_tokens",
  "$JS.API.STREAM.MSG.DELETE.PUSH_EVENTS",
  "$JS.API.STREAM.MSG.GET.PUSH_CMD",
  "$JS.API.STREAM.MSG.GET.KV_push_tokens",
  "$JS.API.STREAM.SNAPSHOT.PUSH_EVENTS",
  "$JS.API.STREAM.RESTORE.PUSH_EVENTS",
  "$JS.API.CONSUMER.DELETE.PUSH_CMD.dispatch-start",
  "$JS.API.CONSUMER.DELETE.PUSH_DELIVER.dispatch-direct-ios",
  "$JS.API.CONSUMER.PAUSE.PUSH_CMD.dispatch-start",
  "push.evt.v1.prj_1.anything.else",
  "push.cmd.v2.dispatch.send.prj_1.ntf_1",
  "push.due.v1",
  "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.PUSH_CMD.dispatch-start",
  "$SYS.REQ.SERVER.PING",
  "$SYS.REQ.ACCOUNT.PING.CONNZ",
];
/** What the bootstrap step may and no service and no consumer. */
const making = [
  "$JS.API.STREAM.CREATE.MINE",
  "$JS.API.STREAM.UPDATE.PUSH_EVENTS",
  "$JS.API.CONSUMER.CREATE.PUSH_EVENTS.mine",
  "$JS.API.CONSUMER.CREATE.PUSH_CMD.mine.push.cmd.v1.dispatch.send.*.*",
  "$JS.API.CONSUMER.DURABLE.CREATE.PUSH_EVENTS.consumers-opens",
  "$JS.API.CONSUMER.DELETE.PUSH_EVENTS.consumers-opens",
];
const send = "push.cmd.v1.dispatch.send.prj_1.ntf_1";
const deliver = "push.deliver.v1.direct.ios.prj_1";
const opened = "push.evt.v1.prj_1.notification.opened";
const registered = "push.evt.v1.prj_1.device.registered";
const token = "$KV.push_tokens.1";
const readToken = "$JS.API.DIRECT.GET.KV_push_tokens.$KV.push_tokens.1";
const watchTokens = "$JS.API.CONSUMER.CREATE.KV_push_tokens.mine.$KV.push_tokens.>";
const schedule = "push.sched.v1.batch.1";
const ask = "push.req.v1.registry.projects.list";

/** What each may not publish, although another may. */
const forbidden: Readonly<Record<Restricted, readonly string[]>> = {
  gateway: [
    ...making,
    token,
    "$KV.push_projects.prj_1.settings",
    schedule,
    registered,
    opened,
    "push.dlq.v1.dispatch-start",
  ],
  registry: [...making, send, schedule, opened, ask, "$KV.push_projects.prj_1.providers", "$KV.push_idempotency.1"],
  dispatch: [
    ...making,
    send,
    deliver,
    opened,
    registered,
    ask,
    token,
    readToken,
    watchTokens,
    "push.dlq.v1.registry-expand",
  ],
  analytics: [...making, send, deliver, schedule, registered, ask, token, readToken, watchTokens],
  bootstrap: [
    send,
    deliver,
    schedule,
    opened,
    ask,
    token,
    readToken,
    watchTokens,
    "$JS.API.CONSUMER.DURABLE.CREATE.KV_push_tokens.mine",
    "$JS.API.CONSUMER.MSG.NEXT.PUSH_CMD.dispatch-start",
  ],
  opens: [
    ...making,
    send,
    deliver,
    schedule,
    opened,
    ask,
    token,
    readToken,
    watchTokens,
    "$JS.API.STREAM.INFO.PUSH_EVENTS",
  ],
};

/** One durable of each, which no other may read or settle. */
const durables = {
  registry: "PUSH_CMD.registry-expand",
  dispatch: "PUSH_DELIVER.dispatch-direct-ios",
  analytics: "PUSH_CMD.analytics-record-opens",
  opens: "PUSH_EVENTS.consumers-opens",
} as const;
const settling = (durable: string) => [
  `$JS.API.CONSUMER.MSG.NEXT.${durable}`,
  `$JS.ACK.${durable}.1.1.1.1.1`,
  `$JS.ACK._.hash.${durable}.1.1.1.1.1.x`,
];

describe.each(restricted)("the user of %s", (name) => {
  test("listens to its inbox", async () => {
    expect(await subscribing(name, `${busUsers[name].inboxPrefix}.>`)).toBeUndefined();
  });

  const inboxes = Object.entries(busUsers).flatMap(([other, { inboxPrefix }]) =>
    other === name ? [] : [`${inboxPrefix}.>`],
  );
  const others = ["registry", "dispatch", "analytics"].flatMap((other) =>
    other === name ? [] : [`push.req.v1.${other}.>`],
  );
  test.each([
    ">",
    "*",
    "push.>",
    "push.evt.>",
    "push.cmd.>",
    "push.req.>",
    "$JS.>",
    "$KV.>",
    "$SYS.>",
    ...inboxes,
    ...others,
  ])("may not listen to %s", async (subject) => {
    expect(await subscribing(name, subject)).toMatch(/^permissions violation for subscription/i);
  });

  test.each([...everyone, ...forbidden[name]])("may not publish to %s", async (subject) => {
    expect(await publishing(name, subject)).toMatch(/^permissions violation for publish/i);
  });

  test.each(Object.entries(durables))(
    "reads and settles what %s takes only where that is its own",
    async (owner, durable) => {
      for (const subject of settling(durable)) {
        if (owner === name) expect(await publishing(name, subject)).toBeUndefined();
        else expect(await publishing(name, subject)).toMatch(/^permissions violation for publish/i);
      }
    },
  );

  test("has a password", async () => {
    const guess = { url: t.broker.url, ...loginOf(name), password: "guess" };
    expect(await natsRefusal(guess, "PUB x 0\r\n")).toMatch(/^authorization violation/i);
  });
});

describe("what the broker sends for a consumer stays in the consumer's account", () => {
  const { inboxPrefix, permissions } = busUsers.opens;
  const [info, next] = permissions?.publish ?? [];
  /** A person asks once, a consumer for an event too. */
  const askWithReply = async (name: "opens" | "admin", reply: string) => {
    for (const request of name === "admin" ? [info] : [next, info])
      expect(await refusal(name, `PUB ${request} ${reply} 0\r\n`)).toBeUndefined();
  };

  test.each([
    ["PUSH_CMD", "push.cmd.v1.dispatch.send.prj_1.ntf_1"],
    ["PUSH_EVENTS", "push.evt.v1.prj_1.project.deleted"],
    ["KV_push_tokens", "$KV.push_tokens.1"],
  ])("an answer or an event is not stored in %s because its asker named %s", async (stream, subject) => {
    await t.raw.jsm.streams.purge(stream);
    await jetstream(t.raw.nc).publish(opened, "{}");
    const before = await messagesIn(t, stream);
    await askWithReply("opens", subject);
    // In Herald's own account it is: so the test would see it.
    await askWithReply("admin", subject);
    await eventually(async () => expect(await messagesIn(t, stream)).toBeGreaterThan(before));
    expect(await messagesIn(t, stream)).toBe(before + 1);
  });

  test("nor asked of a service", async () => {
    const question = "push.req.v1.registry.projects.delete";
    let asked = 0;
    const listening = t.raw.nc.subscribe(question, {
      callback: () => {
        asked += 1;
      },
    });
    await t.raw.nc.flush();
    await jetstream(t.raw.nc).publish(opened, "{}");
    await askWithReply("opens", question);
    await askWithReply("admin", question);
    await eventually(() => expect(asked).toBeGreaterThan(0));
    expect(asked).toBe(1);
    listening.unsubscribe();
  });

  test("while it reads and settles as in one account", async () => {
    await jetstream(t.raw.nc).publish(opened, "{}");
    const connection = await connect({ servers: t.broker.url, ...nativeLogin("opens"), inboxPrefix });
    const consumer = await jetstream(connection).consumers.get("PUSH_EVENTS", "consumers-opens");
    expect((await consumer.info()).name).toBe("consumers-opens");
    const messages = await consumer.consume({ max_messages: 2 });
    for await (const message of messages) {
      expect(await message.ackAck()).toBe(true);
      if (message.info.pending === 0) break;
    }
    expect(await consumer.info()).toMatchObject({ num_ack_pending: 0, num_pending: 0 });
    await connection.close();
  });
});

test("the bootstrap step's user makes and changes everything that is declared", async () => {
  const bus = await connectAs("bootstrap");
  for await (const { config } of t.raw.jsm.streams.list()) await t.raw.jsm.streams.delete(config.name);
  const options = { replicas: 1, sizeFactor: 0.01 } as const;
  expect(await ensureStreams(bus, options)).toMatchObject({ problems: [] });
  expect(await ensureStreams(bus, { ...options, sizeFactor: 0.02 })).toMatchObject({ created: [], problems: [] });
  await closeBus(bus);
});
