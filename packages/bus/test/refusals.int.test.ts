import { type BusUserName, busUsers } from "@herald/bus/permissions";
import { natsRefusal } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, startBusTest } from "./fixture.ts";
import { natsLogin } from "./nats-login.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

const restricted = ["gateway", "registry", "dispatch", "analytics", "bootstrap", "opens"] as const;
type Restricted = (typeof restricted)[number];

const refusal = (name: BusUserName, line: string) => natsRefusal({ url: t.broker.url, ...natsLogin(t, name) }, line);
const subscribing = (name: BusUserName, subject: string) => refusal(name, `SUB ${subject} 1`);
const publishing = (name: BusUserName, subject: string) =>
  refusal(name, `PUB ${subject} ${busUsers[name].inboxPrefix}.1 0\r\n`);

/** Subjects that only administrators may publish. */
const everyone = [
  "$JS.API.INFO",
  "$JS.API.STREAM.DELETE.PUSH_EVENTS",
  "$JS.API.STREAM.PURGE.PUSH_CMD",
  "$JS.API.STREAM.PURGE.KV_push_tokens",
  "$JS.API.STREAM.MSG.DELETE.PUSH_EVENTS",
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
/** Subjects that only the bootstrap step may publish, no service and no consumer. */
const making = [
  "$JS.API.STREAM.CREATE.MINE",
  "$JS.API.STREAM.UPDATE.PUSH_EVENTS",
  "$JS.API.CONSUMER.CREATE.PUSH_CMD.mine.push.cmd.v1.dispatch.send.*.*",
  "$JS.API.CONSUMER.DURABLE.CREATE.PUSH_EVENTS.consumers-opens",
  "$JS.API.CONSUMER.CREATE.PUSH_EVENTS.mine",
  "$JS.API.CONSUMER.DELETE.PUSH_EVENTS.consumers-opens",
];
/** Allowed for dispatch, which looks for accepted notifications that it has not received yet. */
const readCommands = "$JS.API.STREAM.MSG.GET.PUSH_CMD";
/** Allowed for analytics, which measures the stream. */
const measureEvents = "$JS.API.STREAM.INFO.PUSH_EVENTS";
/** Allowed for the gateway, which shows projects their events, and for analytics, which estimates their size. */
const readEvents = "$JS.API.DIRECT.GET.PUSH_EVENTS";
const send = "push.cmd.v1.dispatch.send.prj_1.ntf_1";
const deliver = "push.deliver.v1.direct.ios.prj_1";
const opened = "push.evt.v1.prj_1.notification.opened";
const registered = "push.evt.v1.prj_1.device.registered";
const token = "$KV.push_tokens.1";
const readToken = "$JS.API.DIRECT.GET.KV_push_tokens.$KV.push_tokens.1";
const watchTokens = "$JS.API.CONSUMER.CREATE.KV_push_tokens.mine.$KV.push_tokens.>";
const schedule = "push.sched.v1.batch.1";
/** A forged event would become a row of the audit log. */
const audited = "push.evt.v1.installation.audit.recorded";
const operator = "$KV.push_operators.1";
const session = "$KV.push_sessions.session.1";
const ask = "push.req.v1.registry.projects.list";

/** Allowed for the gateway or the registry, and for no other service. */
const ofGatewayOrRegistry = [audited, operator, session, ask, token, readToken, watchTokens];
/** Allowed for services, but not for the bootstrap step and external consumers. */
const work = [readCommands, send, deliver, schedule, opened, ...ofGatewayOrRegistry];

/** Subjects that each user may not publish, although another may. */
const forbidden: Readonly<Record<Restricted, readonly string[]>> = {
  // Without the events: the gateway may replay events that a durable of Herald reads.
  gateway: [
    ...making,
    readCommands,
    token,
    operator,
    "$KV.push_projects.prj_1.settings",
    schedule,
    "push.dlq.v1.dispatch-start",
  ],
  registry: [
    ...making,
    readCommands,
    measureEvents,
    readEvents,
    send,
    schedule,
    opened,
    audited,
    session,
    ask,
    "$KV.push_providers.prj_1",
    "$KV.push_idempotency.1",
  ],
  dispatch: [
    ...making,
    measureEvents,
    readEvents,
    deliver,
    opened,
    registered,
    ...ofGatewayOrRegistry,
    "push.dlq.v1.registry-expand",
  ],
  analytics: [...making, readCommands, send, deliver, schedule, registered, ...ofGatewayOrRegistry],
  bootstrap: [
    ...work,
    "$JS.API.CONSUMER.DURABLE.CREATE.KV_push_tokens.mine",
    "$JS.API.CONSUMER.MSG.NEXT.PUSH_CMD.dispatch-start",
  ],
  opens: [...making, measureEvents, readEvents, ...work],
};

/** One durable of each user, which no other user may read or settle. */
const durables = {
  registry: "PUSH_CMD.registry-expand",
  dispatch: "PUSH_DELIVER.dispatch-direct-ios",
  analytics: "PUSH_OPENS.analytics-open-groups",
  opens: "PUSH_EVENTS.consumers-opens",
} as const;
const settling = (durable: string) => [`$JS.ACK.${durable}.1.1.1.1.1`, `$JS.ACK._.hash.${durable}.1.1.1.1.1.x`];

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
      const next = `$JS.API.CONSUMER.MSG.NEXT.${durable}`;
      for (const subject of [next, ...settling(durable)]) {
        if (owner === name) expect(await publishing(name, subject)).toBeUndefined();
        else expect(await publishing(name, subject)).toMatch(/^permissions violation for publish/i);
      }
    },
  );

  test("has a password", async () => {
    const guess = { url: t.broker.url, ...natsLogin(t, name), password: "guess" };
    expect(await natsRefusal(guess, "PUB x 0\r\n")).toMatch(/^authorization violation/i);
  });
});
