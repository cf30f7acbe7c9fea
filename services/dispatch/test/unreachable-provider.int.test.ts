import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { sendRequest } from "@herald/bus";
import { deliveryRequests, providerRequests } from "@herald/contracts";
import { type Simulators, startSimulators } from "@herald/simulators";
import { eventually, faultyProxy } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
let others: Simulators;
beforeAll(async () => {
  [dispatch, others] = await Promise.all([startDispatchTest(), startSimulators()]);
});
afterAll(() => Promise.all([dispatch.stop(), others.stop()]));
beforeEach(() => dispatch.simulators.clear());

/** Creates a project with changed provider settings, and sends a notification to `count` devices. */
const sendTo = async (count: number, change: Record<string, unknown>) => {
  const projectId = await dispatch.project();
  await dispatch.putProvider(projectId, change);
  const id = await dispatch.send(projectId);
  const batch = devices(count);
  await dispatch.partition(projectId, id, [batch]);
  const view = () => sendRequest(dispatch.bus, providerRequests.get, { projectId, provider: "apns" });
  const getTrace = (deviceId = batch.at(-1)?.id ?? ("" as never)) =>
    sendRequest(dispatch.bus, deliveryRequests.trace, { projectId, notificationId: id, deviceId });
  return { projectId, id, view, getTrace };
};

test("an authority that is not trusted is shown with the provider and with each device, and new settings send what waits", async () => {
  const { projectId, id, view, getTrace } = await sendTo(120, { ca: others.ca });
  const { host } = new URL(dispatch.simulators.apns.url);
  await eventually(async () =>
    expect(await view()).toMatchObject({
      status: "active",
      problems: [{ reason: "certificate-untrusted", host, detail: expect.stringContaining("Check that `ca`") }],
    }),
  );
  await eventually(async () => {
    const { attempts, nextAttemptAt } = await getTrace();
    expect(attempts.at(-1)?.provider_reason).toContain(`cannot reach ${host}: `);
    expect(["deferred", "blocked"]).toContain(attempts.at(-1)?.outcome);
    expect(nextAttemptAt).toBeDefined();
  });

  await dispatch.putProvider(projectId);
  expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { devices: 120, accepted: 120 } });
  await eventually(async () => expect(await view()).not.toHaveProperty("problems"));
});

test("a server that is unavailable and comes back by itself is no problem any more", async () => {
  const proxy = await faultyProxy(dispatch.simulators.apns.url);
  try {
    await proxy.cut();
    const { projectId, id, view } = await sendTo(3, { endpoint: new URL(proxy.url).origin });
    await eventually(async () =>
      expect(await view()).toMatchObject({ problems: [{ reason: "connection-refused", since: expect.any(String) }] }),
    );
    await proxy.heal();
    await eventually(
      async () => {
        dispatch.pass(5_000);
        expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { accepted: 3 } });
      },
      { timeoutMs: 20_000 },
    );
    await eventually(async () => expect(await view()).not.toHaveProperty("problems"));
  } finally {
    await proxy.stop();
  }
});

test("a test push to a server that never completes the handshake was not sent, and says so", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.on("error", () => {})));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const projectId = await dispatch.project();
  const endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await dispatch.putProvider(projectId, { endpoint });
  const push = { token: device().token };
  expect(await sendRequest(dispatch.bus, providerRequests.test, { projectId, provider: "apns", push })).toEqual({
    result: "not-reached",
    detail: expect.stringMatching(/^no connection within 4 s\. .*firewall/),
  });
  for (const socket of sockets) socket.destroy();
  await once(server.close(), "close");
});

test("a problem that has not occurred for a while is not shown: its process may be gone", async () => {
  const { projectId, view } = await sendTo(1, { ca: others.ca });
  await eventually(async () => expect(await view()).toHaveProperty("problems"));
  // Not with `pass`, after which a retry to the waiting device would report the problem again.
  await dispatch.database.client
    .db(dispatch.database.name)
    .collection("credentials")
    .updateOne({ projectId }, { $set: { "problems.0.at": new Date(dispatch.now().getTime() - 16 * 60_000) } });
  expect(await view()).not.toHaveProperty("problems");
});
