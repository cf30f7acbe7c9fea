import { audienceRequests, DeviceUpdatedV1, deviceRequests, type ProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { apnsToken, useRegistry } from "./registry-fixture.ts";

const registry = useRegistry();
const driver = "com.example.driver";
const rider = "com.example.rider";

let projectId: ProjectId;
let ofDriver: string;
let ofRider: string;
let ofNone: string;

const register = async (app?: string) => {
  const token = apnsToken(`${projectId}/${app}`);
  return (await registry.register(projectId, token, { app, topics: ["news"], userId: "u_1" })).device.id;
};
beforeEach(async () => {
  projectId = await registry.project();
  [ofDriver, ofRider, ofNone] = [await register(driver), await register(rider), await register()];
});

const change = (deviceId: string, app: string | null) =>
  registry.ask(deviceRequests.change, { projectId, deviceId: deviceId as never, change: { app } });

describe("the app of a device", () => {
  test("is stored at registration, changed and removed", async () => {
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: ofDriver as never })).toMatchObject({
      app: driver,
    });
    expect(await change(ofDriver, rider)).toMatchObject({ app: rider });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, DeviceUpdatedV1)).toMatchObject({ changed: ["app"] }),
    );
    expect(await change(ofDriver, null)).not.toHaveProperty("app");
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: ofDriver as never })).not.toHaveProperty(
      "app",
    );
  });

  test("stays when a registration does not name it, and needs proof to change", async () => {
    const token = apnsToken(`${projectId}/${driver}`);
    expect((await registry.register(projectId, token)).device).toMatchObject({ app: driver });
    const identify = { projectId, platform: "ios", token, app: rider } as const;
    expect(await registry.ask(deviceRequests.identify, identify)).toMatchObject({ ignored: ["app"] });
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: ofDriver as never })).toMatchObject({
      app: driver,
    });
  });

  test("comes with devices of the backend", async () => {
    const device = { platform: "ios", token: apnsToken(`${projectId}/put`), app: driver };
    const put = () => registry.ask(deviceRequests.put, { projectId, devices: [device, { ...device, app: "a/b" }] });
    expect((await put()).results).toMatchObject([
      { result: "created" },
      { result: "refused", problems: [{ field: "app" }] },
    ]);
    expect((await put()).results).toMatchObject([{ result: "unchanged" }, { result: "refused" }]);
  });
});

describe("a filter by app", () => {
  const all = () => [ofDriver, ofRider, ofNone].toSorted();
  const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id).toSorted();
  const page = { by: "key", after: "", perPage: 100 } as const;

  test("narrows lists, and what a target matches", async () => {
    const list = (more: object) => registry.ask(deviceRequests.list, { projectId, page, ...more });
    expect(idsOf(await list({}))).toEqual(all());
    expect(idsOf(await list({ app: driver }))).toEqual([ofDriver]);
    expect(idsOf(await list({ app: driver, match: "topic:news" }))).toEqual([ofDriver]);
    expect(idsOf(await list({ app: "com.example.other" }))).toEqual([]);
  });

  test("is a field of conditions", async () => {
    const matching = async (condition: string) =>
      idsOf(await registry.ask(deviceRequests.list, { projectId, page, match: `condition:${condition}` }));
    expect(await matching(`app == '${driver}'`)).toEqual([ofDriver]);
    expect(await matching(`app in ['${driver}', '${rider}']`)).toEqual([ofDriver, ofRider].toSorted());
    expect(await matching(`'news' in topics && app != '${driver}'`)).toEqual([ofRider, ofNone].toSorted());
    expect(await matching("!exists(app)")).toEqual([ofNone]);
  });

  test("narrows small sends, each by its own", async () => {
    const targets = ["user:u_1"];
    const request = { projectId, sends: [{ targets }, { targets, app: driver }, { targets, app: "x" }], limit: 100 };
    const { sends } = await registry.ask(audienceRequests.resolve, request);
    const devices = sends.map((send) => send?.batches.flatMap((batch) => batch.devices));
    expect(devices.map((some) => some?.map(({ id }) => id))).toEqual([all(), [ofDriver], []]);
    expect(devices[1]?.[0]).toMatchObject({ app: driver });
    expect(devices[0]?.find(({ id }) => id === ofNone)).not.toHaveProperty("app");
    expect(sends.map((send) => send?.unmatched)).toEqual([[], [], targets]);
  });

  test("narrows expansions and dry runs", async () => {
    const wanted = { projectId, targets: ["topic:news", "all"], app: rider };
    expect(await registry.ask(audienceRequests.count, wanted)).toEqual({
      devices: { ios: 1, android: 0, web: 0 },
      unmatched: [],
    });
    expect(await registry.ask(audienceRequests.count, { ...wanted, app: "x" })).toMatchObject({
      unmatched: wanted.targets,
    });
  });

  test("explains why a device that a target names gets nothing", async () => {
    const explain = (app?: string) =>
      registry.ask(audienceRequests.explain, { projectId, deviceId: ofRider as never, targets: ["topic:news"], app });
    expect(await explain(driver)).toMatchObject({ matched: "topic:news", otherApp: true });
    expect(await explain(rider)).not.toHaveProperty("otherApp");
    expect(await explain()).not.toHaveProperty("otherApp");
  });
});
