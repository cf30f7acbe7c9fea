import { busUsers } from "@herald/bus/permissions";
import { eventually, natsRefusal } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, messagesIn, startBusTest } from "./fixture.ts";
import { nativeLogin, natsLogin } from "./nats-login.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

const refusal = (name: "opens" | "admin", line: string) =>
  natsRefusal({ url: t.broker.url, ...natsLogin(t, name) }, line);
const opened = "push.evt.v1.prj_1.notification.opened";

describe("replies of the broker to a consumer stay in the consumer's account", () => {
  const { inboxPrefix, permissions } = busUsers.opens;
  const [info, next] = permissions?.publish ?? [];
  /** The admin requests only the info; the consumer also requests an event. */
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
    // In Herald's own account the stream stores the reply, so the test would detect it.
    await askWithReply("admin", subject);
    await eventually(async () => expect(await messagesIn(t, stream)).toBeGreaterThan(before));
    expect(await messagesIn(t, stream)).toBe(before + 1);
  });

  test("a consumer cannot send a request to a service by a reply subject", async () => {
    const subject = "push.req.v1.registry.projects.delete";
    let asked = 0;
    const listening = t.raw.nc.subscribe(subject, {
      callback: () => {
        asked += 1;
      },
    });
    await t.raw.nc.flush();
    await jetstream(t.raw.nc).publish(opened, "{}");
    await askWithReply("opens", subject);
    await askWithReply("admin", subject);
    await eventually(() => expect(asked).toBeGreaterThan(0));
    expect(asked).toBe(1);
    listening.unsubscribe();
  });

  test("a consumer reads and settles its messages from its own account", async () => {
    await jetstream(t.raw.nc).publish(opened, "{}");
    const connection = await connect({ servers: t.broker.url, ...nativeLogin(t, "opens"), inboxPrefix });
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
