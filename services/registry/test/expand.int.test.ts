import { defineHandler } from "@herald/bus";
import { batchLimits, ExpandV1, newDeviceId, newProjectId, type ProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ExpandTest, many, sorted, startExpandTest } from "./expand-fixture.ts";
import { patient } from "./registry-fixture.ts";
import type { SeedDevice } from "./seed-devices.ts";

let t: ExpandTest;
let projectId: ProjectId;
beforeAll(async () => {
  t = await startExpandTest();
});
afterAll(() => t.stop());
beforeEach(async () => {
  projectId = await t.newProject();
});

describe("an audience", () => {
  test("of one device is one batch on the direct lane, with all that a delivery needs", async () => {
    const keys = { p256dh: "p".repeat(87), auth: "a".repeat(22) };
    const [id] = await t.seed([
      {
        token: "https://push.example/1",
        platform: "web",
        keys,
        identifiers: { current_locale: "pt-BR" },
        metadata: { x: 1 },
      },
    ]);
    const { end, batches } = await t.expand([id ?? ""]);
    expect(end).toMatchObject({ batches: 1, devices: 1, unmatched: [] });
    const document = await t.registry.db.collection("devices").findOne({ projectId });
    expect(batches).toEqual([
      {
        batchId: `${end.notificationId}/0/0`,
        projectId,
        notificationId: end.notificationId,
        lane: "direct",
        platform: "web",
        devices: [
          { id, token: "https://push.example/1", tokenAt: document?.tokenUpdatedAt.getTime(), keys, locale: "pt-BR" },
        ],
      },
    ]);
  });

  test("without devices ends at once, with every target unmatched", async () => {
    const targets = ["topic:none", newDeviceId(new Date()), "token:none", "metadata:a=b", "news"];
    const { end, batches } = await t.expand(targets);
    expect(end).toMatchObject({ batches: 0, devices: 0, unmatched: targets });
    expect(batches).toEqual([]);
  });

  test("of 7,000 devices in several targets is each of them once, in batches within the limits", async () => {
    const ids = await t.seed(many(7_000, (at) => (at % 3 === 0 ? ["news", "sport"] : at % 2 ? ["news"] : ["sport"])));
    const inactive = ids.slice(0, 50);
    await t.setStatus(inactive, "inactive");
    const direct = ids[100] ?? "";
    const { end, batches, devices } = await t.expand([
      "news",
      "topic:sport",
      direct,
      "token:t101",
      "identifiers:current_locale=de",
      "gone",
    ]);
    expect(sorted(devices)).toEqual(sorted(ids.slice(50)));
    expect(end).toMatchObject({ devices: 6_950, unmatched: ["gone"] });
    expect(new Set(batches.map(({ batchId }) => batchId.split("/")[1])).size, "pages").toBeGreaterThan(2);
    for (const batch of batches) {
      expect(batch.devices.length).toBeLessThanOrEqual(batchLimits.devices);
      expect(batch.devices.map(({ id }) => id)).toEqual(sorted(batch.devices.map(({ id }) => id)));
      expect(batch.lane).toBe("broadcast");
    }
  });

  test("`all` is every active device of the project, and no other project's", async () => {
    const ids = await t.seed(many(4_000, () => []));
    const other = projectId;
    await t.newProject();
    const own = await t.seed(many(30));
    const one = await t.expand(["all", "news", "none", `device:${ids[0]}`]);
    expect(sorted(one.devices)).toEqual(sorted(own));
    expect(one.end.unmatched).toEqual(["none", `device:${ids[0]}`]);
    t.about(other);
    expect(sorted((await t.expand(["all"])).devices)).toEqual(sorted(ids));
  });

  test("by values finds numbers as text, long values in the documents, and nothing inside of lists", async () => {
    const long = "x".repeat(300);
    const android = (token: string, metadata: object): SeedDevice => ({
      token,
      platform: "android",
      metadata: { ...metadata },
    });
    const [one, text, large, list, deep] = await t.seed([
      android("a", { n: 1 }),
      android("b", { n: "1" }),
      android("c", { bio: long }),
      android("d", { bio: [long] }),
      android("e", { deep: { bio: long } }),
    ]);
    expect(sorted((await t.expand(["metadata:n=1"])).devices)).toEqual(sorted([one ?? "", text ?? ""]));
    expect((await t.expand([`metadata:bio=${long}`])).devices).toEqual([large]);
    const both = await t.expand([`metadata:deep.bio=${long}`, "metadata:n=2", `metadata:$where=${long}`]);
    expect(both.devices).toEqual([deep]);
    expect(both.end.unmatched).toEqual(["metadata:n=2", `metadata:$where=${long}`]);
    expect(list).toBeDefined();
  });

  test("by token is that token on every platform", async () => {
    const ids = await t.seed([
      { token: "same", platform: "ios" },
      { token: "same", platform: "android" },
      { token: "other", platform: "ios" },
    ]);
    const { devices, end } = await t.expand(["token:same"]);
    expect(sorted(devices)).toEqual(sorted(ids.slice(0, 2)));
    expect(end).toMatchObject({ batches: 2, unmatched: [] });
  });

  test("of a thousand topics is read in a few queries", async () => {
    const ids = await t.seed(many(200, (at) => [`t${at}`, `u${at}`]));
    const targets = Array.from({ length: 1_000 }, (_, at) => `t${at}`);
    const { devices, end } = await t.expand(targets);
    expect(sorted(devices)).toEqual(sorted(ids));
    expect(end.unmatched).toEqual(targets.slice(200));
  });

  describe("in the dead letters", () => {
    const dead: unknown[] = [];
    let taken: ExpandV1["notificationId"];
    const finishDeletion = defineHandler({
      durable: "dispatch-dead-letters",
      message: { ...ExpandV1, filter: "push.dlq.v1.>" },
      handle: async ({ data }) => void dead.push(data),
    });

    test.each([
      ["that is not understood", () => t.message(["condition:x"])],
      // No service sends this message, but it would be retried again and again.
      ["of a notification that is another project's", () => t.message(["all"], { notificationId: taken })],
    ])("%s becomes one at once", async (_, message) => {
      taken = (await t.expand(["all"])).end.notificationId;
      const data = { ...message(), projectId: newProjectId(new Date()) };
      const handling = await t.registry.handle(finishDeletion);
      await t.send(data);
      await eventually(() => expect(dead).toContainEqual(data));
      await handling.stop(1_000);
    });
  });
});

describe("a full queue", () => {
  test(
    "is waited for while another project and the direct lane continue; then nothing is missing",
    patient,
    async () => {
      const full = projectId;
      const ids = await t.seed(many(2_500).map((device) => ({ ...device, platform: "android" as const })));
      await t.takeBroadcasts(false);
      // Eighteen batches, of which the queue accepts eight.
      const waiting = Array.from({ length: 6 }, () => t.message(["news"]));
      for (const data of waiting) await t.send(data);
      await eventually(async () => {
        const pages = await t.registry.db.collection("expansions").countDocuments({ projectId: full });
        expect(pages).toBeGreaterThan(1);
      });

      const direct = await t.expand([ids[0] ?? ""]);
      expect(direct.devices).toEqual([ids[0]]);
      await t.newProject();
      const [other] = await t.seed([{ token: "o", platform: "ios", topics: ["news"] }]);
      const { devices } = await t.expand([other ?? ""]);
      expect(devices).toEqual([other]);

      t.about(full);
      await t.takeBroadcasts(true);
      for (const data of waiting) {
        const { devices } = await t.outcome(data.notificationId);
        expect(sorted(devices)).toEqual(sorted(ids));
      }
    },
  );
});
