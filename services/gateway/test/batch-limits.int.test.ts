import { randomUUID } from "node:crypto";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { windowSeconds } from "../src/auth/rate-limits.ts";
import { postBatch, small, smalls } from "./batch-fixture.ts";
import { type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest({
    environment: { HERALD_GATEWAY_QUOTA_SENDS: "2000", HERALD_GATEWAY_LIMIT_PROJECT: "5000" },
  });
});
afterAll(() => system.stop());
beforeEach(async () => {
  // Quotas count per project.
  project = await system.project();
});

const post = (notifications: unknown, key?: string) => postBatch(system, project, notifications, key);

describe("limits", () => {
  test("count each notification: what is beyond the quota is refused by itself, and a replay counts nothing", async () => {
    for (let index = 0; index < 3; index++) expect((await post(smalls(500))).status).toBe(202);
    const key = randomUUID();
    const first = await post([{ title: "bad", targets: [] }, ...smalls(499)], key);
    expect(first.status).toBe(202);
    // Repeats count as requests, so another token has to make room for them.
    project = { ...project, token: await system.token(project, ["send"]) };
    for (let index = 0; index < 2; index++)
      expect((await post([{ title: "bad", targets: [] }, ...smalls(499)], key)).body).toEqual(first.body);
  });

  test("a batch that passes the quota is accepted up to it, then 429", async () => {
    for (let index = 0; index < 3; index++) expect((await post(smalls(500))).status).toBe(202);
    expect((await post(smalls(498))).status).toBe(202);
    const partly = await post([small("in"), { title: "bad", targets: [] }, small("in too"), small("out")]);
    expect(partly.body.data).toEqual([
      { id: expect.any(String) },
      { errors: [expect.stringContaining("notifications.1.targets")] },
      { id: expect.any(String) },
      { errors: [expect.stringMatching(/^notifications\.3: notifications: at most 2000 in 3600 s/)] },
    ]);
    const refused = await post([small("out")]);
    expect([refused.status, refused.problem.type]).toEqual([429, "/docs/errors#quota-exceeded"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("a batch for which the rate limit has no room is refused as a whole", async () => {
    const invalid = Array.from({ length: 500 }, () => 1);
    const fill = async () => {
      const begun = performance.now();
      const invalids = await Promise.all(Array.from({ length: 4 }, () => post(invalid)));
      const [last, refused] = [await post(smalls(400)), await post(smalls(499))];
      if (performance.now() - begun < windowSeconds * 1_000) return { invalids, last, refused };
      // A slow machine needed a second window: another token begins with an empty one.
      project = { ...project, token: await system.token(project, ["send"]) };
      throw new Error("it took longer than a window");
    };
    const { invalids, last, refused } = await eventually(fill);
    for (const { status } of invalids) expect(status).toBe(422);
    expect(last.headers.get("ratelimit")).toMatch(/^"token";r=\d{1,3};/);
    expect([refused.status, refused.problem.type]).toEqual([429, "/docs/errors#rate-limited"]);
    expect(refused.problem.errors[0]).toContain("each notification of a batch counts as one");
    // The refused batch was not counted, so there is still room for one send.
    expect((await post([small("one")])).status).toBe(202);
  });
});
