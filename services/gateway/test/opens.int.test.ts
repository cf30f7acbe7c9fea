import { consume, defineHandler } from "@herald/bus";
import { newDeviceId, newNotificationId, OpenGroupV1, type ProjectId } from "@herald/contracts";
import { createOpenTokens, openTokenLifetimeMs } from "@herald/payload";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { openTokens } from "./new-world.ts";

let system: GatewayTest;
let project: TestProject;
let stop: () => Promise<void>;
let now = () => new Date();
const groups: OpenGroupV1[] = [];

beforeAll(async () => {
  system = await startGatewayTest({ now: () => now(), environment: { HERALD_GATEWAY_LIMIT_FAILURES: "20" } });
  project = await system.project();
  const handler = defineHandler({
    durable: "analytics-open-groups",
    message: OpenGroupV1,
    handle: async ({ data }) => void groups.push(data),
  });
  const consuming = await consume(system.bus, [handler]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  stop = () => consuming.stop(2_000);
});
afterAll(async () => {
  await stop();
  await system.stop();
});
beforeEach(() => {
  groups.length = 0;
  now = () => new Date();
});

const claim = (projectId: ProjectId = project.id) => ({
  projectId,
  notificationId: newNotificationId(new Date()),
  deviceId: newDeviceId(new Date()),
  platform: "android" as const,
});

const open = (notificationId: string, projectId: string, token: string) =>
  system.call(`PUT /api/v1/notifications/${notificationId}/open`, { body: { project_id: projectId, token } });

describe("valid opens", () => {
  test("of one project that come together go together, each once, and each is answered", async () => {
    const other = await system.project();
    const claims = [
      ...Array.from({ length: 250 }, () => claim()),
      ...Array.from({ length: 20 }, () => claim(other.id)),
    ];
    const answers = await Promise.all(
      claims.map((one) => open(one.notificationId, one.projectId, openTokens.sign(one, new Date()))),
    );
    expect(answers.every(({ status }) => status === 204)).toBe(true);
    const recorded = () => groups.flatMap(({ projectId, opens }) => opens.map((one) => `${projectId}/${one.deviceId}`));
    await eventually(() => expect(recorded()).toHaveLength(270));
    expect(new Set(recorded())).toEqual(new Set(claims.map((one) => `${one.projectId}/${one.deviceId}`)));
    expect(Math.max(...groups.map(({ opens }) => opens.length))).toBeGreaterThan(1);
    expect(groups.length).toBeLessThan(100);
  });

  test("have the time of their request", async () => {
    const one = claim();
    const at = new Date(Date.now() + 5_000);
    now = () => at;
    expect((await open(one.notificationId, one.projectId, openTokens.sign(one, new Date()))).status).toBe(204);
    await eventually(() => expect(groups).toHaveLength(1));
    expect(groups[0]?.opens).toEqual([
      { notificationId: one.notificationId, deviceId: one.deviceId, platform: "android", openedAt: at.toISOString() },
    ]);
  });
});

describe("a token that does not fit", () => {
  test("is refused, whatever is wrong with it, and nothing is recorded", async () => {
    const one = claim();
    const other = claim();
    const token = openTokens.sign(one, new Date());
    const [version, keyId, device, letter, expiry, mac = ""] = token.split(".");
    const foreignKey = createOpenTokens([{ id: "k1", secret: Buffer.alloc(32, 7) }]);
    const stranger = await system.project();
    const cases: [string, string, string][] = [
      [other.notificationId, one.projectId, token],
      [one.notificationId, stranger.id, token],
      [one.notificationId, one.projectId, [version, keyId, other.deviceId, letter, expiry, mac].join(".")],
      [one.notificationId, one.projectId, [version, keyId, device, letter, Number(expiry) + 1, mac].join(".")],
      [one.notificationId, one.projectId, [version, "k2", device, letter, expiry, mac].join(".")],
      [one.notificationId, one.projectId, [version, keyId, device, "i", expiry, mac].join(".")],
      [one.notificationId, one.projectId, token.slice(0, -1)],
      [one.notificationId, one.projectId, `${token}A`],
      [one.notificationId, one.projectId, foreignKey.sign(one, new Date())],
      [one.notificationId, one.projectId, "nonsense"],
    ];
    for (const [notificationId, projectId, forged] of cases) {
      const answer = await open(notificationId, projectId, forged);
      expect(answer.status, forged).toBe(403);
      expect(answer.problem.type).toBe("/docs/errors#open-token-invalid");
      expect(JSON.stringify(answer.body)).not.toContain(forged);
    }
    now = () => new Date(Date.now() + openTokenLifetimeMs + 1_000);
    expect((await open(one.notificationId, one.projectId, token)).status).toBe(403);
    now = () => new Date();
    expect((await open("ntf_1", one.projectId, token)).status).toBe(404);
    expect((await open(one.notificationId, "prj_1", token)).status).toBe(422);
    expect((await open(one.notificationId, one.projectId, token)).status).toBe(204);
    await eventually(() => expect(groups.flatMap(({ opens }) => opens)).toHaveLength(1));
  });

  test("counts against its address, but no valid open from there is held back", async () => {
    const one = claim();
    const forged = await Promise.all(
      Array.from({ length: 40 }, () => open(one.notificationId, one.projectId, "forged")),
    );
    expect(new Set(forged.map(({ status }) => status))).toContain(429);
    const valid = await Promise.all(
      Array.from({ length: 50 }, () => {
        const fresh = claim();
        return open(fresh.notificationId, fresh.projectId, openTokens.sign(fresh, new Date()));
      }),
    );
    expect(valid.every(({ status }) => status === 204)).toBe(true);
  });
});
