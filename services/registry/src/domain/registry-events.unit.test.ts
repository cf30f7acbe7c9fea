import { events } from "@herald/contracts";
import { expect, test } from "vitest";
import { eventsOfChange, registryEvent } from "./registry-events.ts";

const deviceId = "dev_06bq4ghm31tz5d2ns8y7k9w0ac";
const topic = { id: "top_06bq4ghm31tz5d2ns8y7k9w0ac", name: "news" } as const;
const context = () => {
  let ids = 0;
  return {
    projectId: "prj_06bq4ghm31tz5d2ns8y7k9w0ac" as const,
    at: new Date("2030-01-01T00:00:00Z"),
    newId: () => `id${++ids}`,
  };
};

test.each([
  { changed: ["metadata"], status: "active", subscribed: [], names: ["DeviceUpdatedV1"] },
  { changed: [], status: "active", subscribed: [topic], names: ["DeviceSubscribedV1"] },
  { changed: ["status"], status: "active", subscribed: [], names: ["DeviceUpdatedV1"] },
  { changed: ["status"], status: "inactive", subscribed: [], names: ["DeviceDeactivatedV1"] },
  {
    changed: ["token", "status"],
    status: "inactive",
    subscribed: [],
    names: ["DeviceUpdatedV1", "DeviceDeactivatedV1"],
  },
  { changed: [], status: "active", subscribed: [], names: [] },
] as const)("$changed of a device that is then $status says $names", ({ changed, status, subscribed, names }) => {
  const said = eventsOfChange(context(), deviceId, { changed, status, subscribed });
  expect(said.map(({ event }) => event)).toEqual(names);
  expect(new Set(said.map(({ id }) => id)).size).toBe(said.length);
});

test("every event matches its contract", () => {
  const at = context();
  const said = [
    registryEvent(at, "DeviceRegisteredV1", deviceId, {
      device_id: deviceId,
      platform: "ios",
      token_hash: "a".repeat(64),
    }),
    registryEvent(at, "ProjectDeletedV1", at.projectId, {}),
    ...eventsOfChange(at, deviceId, { changed: ["token", "status"], status: "inactive", subscribed: [topic] }),
  ];
  for (const { event, data } of said) expect(events[event].schema.parse(data)).toEqual(data);
});
