import { afterAll, beforeAll, expect, test } from "vitest";
import { apnsToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project("Shop");
});
afterAll(() => system.stop());

type Result = { result: string; id?: string; problems?: { pointer: string; detail: string; code: string }[] };

const put = async (devices: unknown[]) => {
  const answer = await system.call("PUT /api/v1/devices", { token: project.token, body: { devices } });
  return { status: answer.status, data: (answer.body as { data?: Result[] }).data ?? [] };
};

test("a thousand devices get a result each, in their order; problems point into the body", async () => {
  const devices: unknown[] = Array.from({ length: 1_000 }, () => ({
    token: apnsToken(),
    platform: "ios",
    metadata: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`k${at}`, at])),
  }));
  devices[3] = { token: "no", platform: "ios" };
  devices[7] = { token: apnsToken(), platform: "ios", metadata: { much: "x".repeat(70_000) } };
  devices[999] = { token: apnsToken(), platform: "ios", surplus: 1 };
  const { status, data } = await put(devices);
  expect(status).toBe(200);
  expect(data).toHaveLength(1_000);
  const refused = data.flatMap(({ result }, at) => (result === "created" ? [] : [at]));
  expect(refused).toEqual([3, 7, 999]);
  expect(data[3]?.problems).toEqual([
    { pointer: "#/devices/3/token", detail: expect.stringContaining("APNs"), code: "invalid-value" },
  ]);
  expect(data[7]?.problems).toEqual([
    { pointer: "#/devices/7", detail: "must be at most 65536 bytes of JSON", code: "too-large" },
  ]);
  expect(data[999]?.problems).toMatchObject([{ pointer: "#/devices/999/surplus" }]);
  const again = await put(devices);
  expect(again.data.filter(({ result }) => result === "unchanged")).toHaveLength(997);
  expect((await put([...devices, devices[0]])).status).toBe(422);
});
