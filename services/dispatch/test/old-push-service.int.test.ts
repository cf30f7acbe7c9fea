import { type Simulators, startSimulators } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";
import { putOther } from "./other-providers-fixture.ts";

let dispatch: DispatchTest;
let old: Simulators;
beforeAll(async () => {
  [dispatch, old] = await Promise.all([startDispatchTest(), startSimulators({ webpush: { http1Only: true } })]);
});
afterAll(() => Promise.all([dispatch.stop(), old.stop()]));
beforeEach(() => old.clear());

const subscribers = (count: number) =>
  Array.from({ length: count }, () => {
    const { endpoint, keys } = old.webpush.subscribe();
    return device("", { token: endpoint, keys });
  }).sort((one, other) => (one.id < other.id ? -1 : 1));

const sendTo = async (batch: ReturnType<typeof subscribers>) => {
  const { project, send, partition } = dispatch;
  const projectId = await project();
  await putOther(dispatch, projectId, "webpush", {
    ...{ subject: "mailto:ops@example.com", endpoint: old.webpush.url, ca: old.ca },
  });
  const id = await send(projectId, {}, { title: "By the old way" });
  await partition(projectId, id, [batch], { platform: "web" });
  return { projectId, id };
};

test("a push service that speaks HTTP/1.1 alone gets what can be decrypted, over connections that are kept", async () => {
  const { projectId, id } = await sendTo(subscribers(120));
  expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { devices: 120, accepted: 120 } });
  const arrived = old.pushes({ provider: "webpush", status: 201 });
  expect(arrived).toHaveLength(120);
  for (const { payload } of arrived) expect(JSON.stringify(payload)).toContain("By the old way");
  expect(old.webpush.connectionCount().accepted).toBeLessThanOrEqual(20);
  const [deliveries] = await dispatch.deliveries(projectId, id);
  expect(deliveries).toMatchObject({ status: "accepted", attempts: 1, possible_repeat: false });
});

test("its refusals, limits and Retry-After become outcomes as with HTTP/2", async () => {
  const [gone, busy, lost, well] = subscribers(4);
  if (!gone || !busy || !lost || !well) throw new Error("four were made");
  const idOf = ({ token }: { token: string }) => token.slice(token.lastIndexOf("/") + 1);
  old.webpush.unsubscribe(idOf(gone));
  old.script([
    { provider: "webpush", tokenPrefix: idOf(busy), status: 500, times: 1 },
    { provider: "webpush", tokenPrefix: idOf(lost), closeSocket: true, times: 1 },
  ]);
  const { projectId, id } = await sendTo([gone, busy, lost, well]);
  await eventually(async () =>
    expect(await dispatch.rows(id)).toMatchObject([{ state: "final" }, { state: "waiting" }]),
  );
  dispatch.pass(60_000);
  expect(await dispatch.final(projectId, id)).toMatchObject({
    counts: { devices: 4, accepted: 3, failed: 1 },
    failures: { unregistered: 1 },
  });
  const deliveries = await dispatch.deliveries(projectId, id);
  const of = (one: { id: string }) => deliveries.find(({ device_id }) => device_id === one.id);
  expect(of(busy)).toMatchObject({ attempts: 2, possible_repeat: false });
  expect(of(lost)).toMatchObject({ attempts: 2, possible_repeat: true });
  expect(of(well)).toMatchObject({ attempts: 1, possible_repeat: false });
});
