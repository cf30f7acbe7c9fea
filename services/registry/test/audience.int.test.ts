import { audienceRequests, deviceRequests, newDeviceId, type Platform, type ProjectId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";
import { type SeedDevice, seedDevices } from "./seed-devices.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
});

const platforms: readonly Platform[] = ["ios", "android", "web"];

describe("an audience that is counted", () => {
  test("has each active device once, by platform, and names targets without a device", async () => {
    const seeds = Array.from(
      { length: 7_000 },
      (_, at): SeedDevice => ({
        token: `t${at}`,
        platform: platforms[at % 3] ?? "ios",
        topics: at % 2 ? ["odd"] : [],
        metadata: { n: at },
      }),
    );
    const ids: string[] = [];
    for await (const some of seedDevices(registry.db, projectId, seeds)) ids.push(...some);
    await registry.db
      .collection<{ _id: string }>("devices")
      .updateMany({ _id: { $in: ids.slice(0, 30) } }, { $set: { status: "inactive" } });
    const targets = ["odd", "condition:metadata.n < 4000", "token:t4001", "none", "condition:metadata.n > 7000"];
    const answer = await registry.ask(audienceRequests.count, { projectId, targets });
    const reached = seeds.flatMap(({ platform }, at) => (at >= 30 && (at % 2 || at < 4_000) ? [platform] : []));
    const of = (wanted: Platform) => reached.filter((platform) => platform === wanted).length;
    expect(answer).toEqual({
      devices: { ios: of("ios"), android: of("android"), web: of("web") },
      unmatched: ["none", "condition:metadata.n > 7000"],
    });
  });

  test("without devices is empty", async () => {
    const answer = await registry.ask(audienceRequests.count, { projectId, targets: ["all", "news"] });
    expect(answer).toEqual({ devices: { ios: 0, android: 0, web: 0 }, unmatched: ["all", "news"] });
  });
});

describe("a device that is explained", () => {
  test("is matched by the first target that fits, as it was sent, active or not", async () => {
    const { device } = await registry.register(projectId, apnsToken("one"), {
      topics: ["news"],
      metadata: { plan: "pro", bio: "x".repeat(300) },
    });
    const explain = (...targets: string[]) =>
      registry.ask(audienceRequests.explain, { projectId, deviceId: device.id, targets });
    const answer = await explain("sport", "condition:metadata.plan == 'pro'", "news", "all");
    expect(answer).toEqual({ device, matched: "condition:metadata.plan == 'pro'" });
    expect((await explain(`metadata:bio=${"x".repeat(300)}`)).matched).toBe(`metadata:bio=${"x".repeat(300)}`);
    expect(await explain("sport", newDeviceId(new Date()), "token:x", "condition:platform != 'ios'")).toEqual({
      device,
    });
    await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change: { status: "inactive" } });
    expect(await explain(device.id)).toMatchObject({ device: { status: "inactive" }, matched: device.id });
  });

  test("must be of the project", async () => {
    const { device } = await registry.register(projectId, apnsToken("two"));
    const other = await registry.project();
    const question = registry.ask(audienceRequests.explain, {
      projectId: other,
      deviceId: device.id,
      targets: ["all"],
    });
    expect(await failure(question)).toMatchObject({ code: "device-not-found" });
  });
});
