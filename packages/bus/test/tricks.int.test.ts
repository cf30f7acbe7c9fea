import { type BusUserName, busUsers } from "@herald/bus/permissions";
import { eventually, natsRefusal } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, startBusTest } from "./fixture.ts";
import { nativeLogin, natsLogin } from "./nats-login.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

const limited = ["gateway", "registry", "dispatch", "analytics", "opens"] as const satisfies readonly BusUserName[];
type Limited = (typeof limited)[number];
const refusal = (name: Limited | "admin", line: string) =>
  natsRefusal({ url: t.broker.url, ...natsLogin(t, name) }, line);
const publishes = (name: Limited) => busUsers[name].permissions?.publish ?? [];

/** The last sequence. It grows with each message, even if the message replaces another. */
const storedIn = async (stream: string): Promise<number> => (await t.raw.jsm.streams.info(stream)).state.last_seq;
const messagesIn = async (stream: string): Promise<number> => (await t.raw.jsm.streams.info(stream)).state.messages;

/** Literal subjects of a user's JetStream requests. JetStream answers each to the reply subject that the request names. */
const requestsOf = (name: Limited): string[] =>
  publishes(name).filter((subject) => subject.startsWith("$JS.API.") && !/[*>]/.test(subject));

/** Subjects on which an attacker with a user's credentials would want a reply or event to be stored. */
const wanted = [
  ["PUSH_CMD", "push.cmd.v1.dispatch.send.prj_1.ntf_1"],
  ["PUSH_DELIVER", "push.deliver.v1.direct.ios.prj_1.0"],
  ["PUSH_SCHEDULE", "push.due.v1.prj_1.ntf_1.1"],
  ["PUSH_EVENTS", "push.evt.v1.prj_1.project.deleted"],
  ["PUSH_DLQ", "push.dlq.v1.dispatch-start"],
  ["KV_push_tokens", "$KV.push_tokens.1"],
  ["KV_push_projects", "$KV.push_projects.prj_1.settings"],
] as const;

const matches = (filter: string, subject: string): boolean => {
  const [want, have] = [filter.split("."), subject.split(".")];
  return want.every((part, at) => part === ">" || part === "*" || part === have[at]);
};

describe.each(limited)("%s's user", (name) => {
  // Subjects that the user may publish itself are no escalation.
  const foreign = wanted.filter(([, subject]) => !publishes(name).some((filter) => matches(filter, subject)));

  test.each(foreign)(
    "has no answer and no event stored in %s by naming its subject as the reply",
    async (stream, subject) => {
      await jetstream(t.raw.nc).publish("push.evt.v1.prj_1.notification.opened", "{}");
      const before = await storedIn(stream);
      for (const request of requestsOf(name))
        expect(await refusal(name, `PUB ${request} ${subject} 0\r\n`), request).toBeUndefined();
      // In Herald's own account the stream stores each reply, so the test would detect it.
      const request = requestsOf(name).find((one) => one.includes("INFO")) ?? "";
      await t.raw.nc.flush();
      expect(await storedIn(stream)).toBe(before);
      expect(await refusal("admin", `PUB ${request} ${subject} 0\r\n`)).toBeUndefined();
      await eventually(async () => expect(await storedIn(stream)).toBe(before + 1));
    },
  );

  test("cannot use a reply subject to send a request to a service that it may not call", async () => {
    const subject = "push.req.v1.registry.projects.delete";
    if (publishes(name).some((filter) => matches(filter, subject))) return;
    let asked = 0;
    const listening = t.raw.nc.subscribe(subject, {
      callback: () => {
        asked += 1;
      },
    });
    await t.raw.nc.flush();
    for (const request of requestsOf(name)) await refusal(name, `PUB ${request} ${subject} 0\r\n`);
    await refusal("admin", `PUB $JS.API.STREAM.INFO.PUSH_CMD ${subject} 0\r\n`);
    await eventually(() => expect(asked).toBe(1));
    listening.unsubscribe();
  });

  test("cannot purge or delete a stream by the subject of a reply", async () => {
    await jetstream(t.raw.nc).publish("push.cmd.v1.dispatch.send.prj_1.ntf_kept", "{}");
    const before = await messagesIn("PUSH_CMD");
    for (const order of ["PURGE", "DELETE"])
      for (const request of requestsOf(name))
        await refusal(name, `PUB ${request} $JS.API.STREAM.${order}.PUSH_CMD 0\r\n`);
    await t.raw.nc.flush();
    expect(await messagesIn("PUSH_CMD")).toBe(before);
  });

  test("cannot have an answer settle another's message, or answer for another", async () => {
    const [request = ""] = requestsOf(name);
    for (const reply of [
      "$JS.ACK.PUSH_CMD.dispatch-start.1.1.1.1.0",
      "$JS.ACK._.x.PUSH_CMD.dispatch-start.1.1.1.1.0",
      "_R_.x",
    ])
      expect(await refusal(name, `PUB ${request} ${reply} 0\r\n`)).toMatch(/permissions violation/i);
  });

  const own = name === "opens" ? "consumers-" : `${name}-`;
  test.each([
    "$JS.API.STREAM.PURGE.PUSH_CMD",
    "$JS.API.STREAM.DELETE.PUSH_CMD",
    "$JS.API.STREAM.MSG.DELETE.PUSH_EVENTS",
    "$JS.API.STREAM.UPDATE.PUSH_EVENTS",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.MSG.GET.PUSH_EVENTS",
    "$JS.API.STREAM.MSG.GET.PUSH_DLQ",
    "$JS.API.DIRECT.GET.KV_push_idempotency",
    "$JS.API.CONSUMER.CREATE.PUSH_CMD",
    "$JS.API.CONSUMER.CREATE.PUSH_CMD.mine",
    "$JS.API.CONSUMER.CREATE.PUSH_EVENTS.mine.push.evt.v1.>",
    "$JS.API.CONSUMER.DURABLE.CREATE.PUSH_EVENTS.mine",
    "$JS.API.CONSUMER.DELETE.PUSH_CMD.dispatch-start",
    "$JS.API.CONSUMER.MSG.NEXT.PUSH_CMD.mine",
    "$JS.API.CONSUMER.PAUSE.PUSH_CMD.dispatch-start",
    "$JS.FC.x",
    "_INBOX_herald-gateway.x",
    "_INBOX.x",
    "$SYS.REQ.SERVER.PING",
  ])("may not publish to %s", async (subject) => {
    expect(await refusal(name, `PUB ${subject} 0\r\n\r\n`)).toMatch(/permissions violation/i);
  });

  test("may not settle messages of other durables, nor subscribe to other subjects", async () => {
    for (const durable of [
      "PUSH_CMD.dispatch-start",
      "PUSH_CMD.registry-expand",
      "PUSH_OPENS.analytics-open-groups",
    ].filter((one) => !one.includes(`.${own}`)))
      expect(await refusal(name, `PUB $JS.ACK.${durable}.1.1.1.1.0 0\r\n\r\n`)).toMatch(/permissions violation/i);
    for (const subject of [">", "push.cmd.>", "$JS.ACK.>", "_INBOX.>", "_R_.>", "$KV.>", "push.req.>"])
      expect(await refusal(name, `SUB ${subject} 1\r\n`), subject).toMatch(/permissions violation/i);
  });
});

test("only dispatch may leave schedules, and none becomes a command: the stream takes no target but its own", async () => {
  for (const name of limited.filter((one) => one !== "dispatch"))
    expect(await refusal(name, "PUB push.sched.v1.x.1 0\r\n\r\n")).toMatch(/permissions violation/i);
  const login = nativeLogin(t, "dispatch");
  const nc = await connect({ servers: t.broker.url, ...login, inboxPrefix: busUsers.dispatch.inboxPrefix });
  const before = await storedIn("PUSH_CMD");
  const schedule = headers();
  schedule.set("Nats-Schedule", "@at 2020-01-01T00:00:00Z");
  schedule.set("Nats-Schedule-Target", "push.cmd.v1.dispatch.send.prj_1.ntf_1");
  const answer = (await nc.request("push.sched.v1.x.1", "{}", { headers: schedule, timeout: 5_000 })).json();
  expect(answer).toMatchObject({ error: { err_code: 10190 } });
  expect(await storedIn("PUSH_CMD")).toBe(before);
  await nc.close();
});
