import { platformOf } from "@herald/contracts";
import { eventually, faultyProxy } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";
import { putOther, serviceAccount } from "./other-providers-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  dispatch.stopClock(); // the limits and the pauses pass by `pass` alone
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const phones = (count: number) =>
  Array.from({ length: count }, () => {
    const { endpoint, keys } = dispatch.simulators.webpush.subscribe();
    return device("", { token: endpoint, keys });
  }).sort((one, other) => (one.id < other.id ? -1 : 1));

const minute = 60_000;

test("a push service that limits its senders is asked about as often as it answers, and every phone gets its push", async () => {
  const { project, send, partition, simulators, final, deliveries } = dispatch;
  dispatch.startClock(); // the broker's clock, which does not stop, starts rows that are due
  const [burst, everyMs, count] = [10, 2_000, 30];
  simulators.script([{ provider: "webpush", status: 429, beyond: { burst, everyMs } }]);
  const projectId = await project();
  await putOther(dispatch, projectId, "webpush", { subject: "mailto:ops@example.com" });
  const id = await send(projectId);
  await partition(projectId, id, [phones(count)], { platform: "web" });
  const refused = () => simulators.pushes({ provider: "webpush", status: 429 }).length;
  await eventually(
    async () => {
      expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { accepted: count, pending: 0 } });
    },
    { timeoutMs: 110_000 },
  );
  await final(projectId, id);
  // Of those that it has no room for, each is refused once, and then a handful.
  expect(refused()).toBeLessThan(count - burst + 12);
  for (const delivery of await deliveries(projectId, id)) expect(delivery).toMatchObject({ attempts: 1 });
});

test.each(["fcm", "apns"] as const)(
  "the server of %s is down for a quarter of an hour, and a single device with a ttl of a day loses nothing",
  async (provider) => {
    const { project, send, partition, simulators, pass, final, rows, deliveries } = dispatch;
    const proxy = await faultyProxy(simulators[provider].url);
    try {
      await proxy.cut();
      const projectId = await project();
      const endpoint = new URL(proxy.url).origin;
      if (provider === "apns") await dispatch.putProvider(projectId, { endpoint });
      else await putOther(dispatch, projectId, "fcm", { service_account: serviceAccount, endpoint });
      const id = await send(projectId);
      await partition(projectId, id, [[device()]], { platform: platformOf[provider] });
      for (let passed = 0; passed < 15 * minute; passed += minute) {
        // It was tried, and waits for another try.
        await eventually(async () => {
          const waiting = (await rows(id)).find(({ state }) => state === "waiting");
          expect(waiting?.dueAt?.getTime()).toBeGreaterThan(dispatch.now().getTime());
        });
        pass(minute);
      }
      expect((await rows(id)).length).toBeGreaterThan(5);
      await proxy.heal();
      await eventually(
        async () => {
          pass(minute);
          expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
        },
        { timeoutMs: 30_000 },
      );
      await final(projectId, id);
      expect(await deliveries(projectId, id)).toMatchObject([{ attempts: 1, possible_repeat: false }]);
    } finally {
      await proxy.stop();
    }
  },
);
