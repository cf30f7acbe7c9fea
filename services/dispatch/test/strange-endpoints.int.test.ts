import { DeliveryFailedV1, type NotificationId, type ProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";
import { putOther } from "./other-providers-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  dispatch.stopClock(); // no pause of a server ends by itself
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

/** Subscriptions on the one push service. A script matches the beginning of their last part. */
const subscribers = (count: number, prefix: string) =>
  Array.from({ length: count }, () => {
    const { endpoint, keys } = dispatch.simulators.webpush.subscribe({ prefix });
    return device("", { token: endpoint, keys });
  }).sort((one, other) => (one.id < other.id ? -1 : 1));

const newProject = async (): Promise<ProjectId> => {
  const projectId = await dispatch.project();
  await putOther(dispatch, projectId, "webpush", { subject: "mailto:ops@example.com" });
  return projectId;
};

const sendTo = async (projectId: ProjectId, batch: ReturnType<typeof subscribers>): Promise<NotificationId> => {
  const id = await dispatch.send(projectId);
  await dispatch.partition(projectId, id, [batch], { platform: "web" });
  return id;
};

const allWait = (id: NotificationId, count: number) =>
  eventually(async () => {
    const rows = (await dispatch.rows(id)).filter(({ state }) => state === "waiting");
    expect(rows.flatMap(({ devices = [] }) => devices)).toHaveLength(count);
  });

test.each([500, 502, 503, 504, 507])(
  "fifty endpoints of a stranger that a push service answers with %i delay no one else there",
  async (status) => {
    dispatch.simulators.script([{ provider: "webpush", tokenPrefix: "dead", status }]);
    const projectId = await newProject();
    const [good] = subscribers(1, "good");
    if (!good) throw new Error("no subscriber");
    const id = await sendTo(projectId, [...subscribers(50, "dead"), good]);
    await allWait(id, 50);
    for (let round = 0; round < 3; round++) {
      const beside = await sendTo(projectId, [good]);
      expect(await dispatch.final(projectId, beside)).toMatchObject({ counts: { accepted: 1 } });
      await allWait(await sendTo(projectId, subscribers(20, "dead")), 20);
    }
  },
);

test("a push service that limits a stranger's endpoints alone delays others by a second at most", async () => {
  dispatch.simulators.script([{ provider: "webpush", tokenPrefix: "dead", status: 429 }]);
  const projectId = await newProject();
  const [good] = subscribers(1, "good");
  if (!good) throw new Error("no subscriber");
  const dead = subscribers(50, "dead");
  await allWait(await sendTo(projectId, dead), 50);
  for (let round = 0; round < 5; round++) {
    dispatch.pass(1_000);
    const beside = await sendTo(
      projectId,
      [...dead, good].sort((one, other) => (one.id < other.id ? -1 : 1)),
    );
    await eventually(async () =>
      expect(await dispatch.get(projectId, beside)).toMatchObject({ counts: { accepted: 1, pending: 50 } }),
    );
  }
});

test("an endpoint to which Herald may never send retires its device, and one that a setting would allow does not", async () => {
  const projectId = await newProject();
  const [inside, elsewhere] = subscribers(2, "x").map((one, index) => ({
    ...one,
    token: ["https://192.168.0.1/push/1", "https://push.example.com/1"][index] ?? "",
  }));
  if (!inside || !elsewhere) throw new Error("no subscribers");
  const id = await sendTo(projectId, [inside, elsewhere]);
  expect(await dispatch.final(projectId, id)).toMatchObject({ failures: { "endpoint-forbidden": 2 } });
  await eventually(async () => {
    const event = await dispatch.lastEvent(projectId, DeliveryFailedV1);
    expect(event?.unregistered).toMatchObject([{ device_id: inside.id, reason: "endpoint-forbidden" }]);
  });
});

test("503 with Retry-After makes its device wait, and no other", async () => {
  const headers = { "retry-after": "3600" };
  dispatch.simulators.script([{ provider: "webpush", tokenPrefix: "dead", status: 503, headers }]);
  const projectId = await newProject();
  const [good] = subscribers(1, "good");
  if (!good) throw new Error("no subscriber");
  await allWait(await sendTo(projectId, subscribers(30, "dead")), 30);
  expect(await dispatch.final(projectId, await sendTo(projectId, [good]))).toMatchObject({ counts: { accepted: 1 } });
});
