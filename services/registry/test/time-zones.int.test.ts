import { deviceRequests, type ProjectId, projectRequests, projectSettingsKey } from "@herald/contracts";
import type { Document } from "mongodb";
import { expect, test } from "vitest";
import { apnsToken, useRegistry } from "./registry-fixture.ts";

let projectId: ProjectId;
const registry = useRegistry({ eachProject: (id) => (projectId = id) });

const zonesOf = async () => {
  const project = await registry.db.collection<Document & { _id: string }>("projects").findOne({ _id: projectId });
  return [...(project?.zones ?? [])].sort();
};

const facetsOf = async (id: string) => {
  const device = await registry.db.collection<Document & { _id: string }>("devices").findOne({ _id: id });
  return device?.facets;
};

test("a project lists the time zones of its devices, each once and by its canonical name", async () => {
  const { device } = await registry.register(projectId, apnsToken("none"));
  expect(await zonesOf()).toEqual(["none"]);
  expect(await facetsOf(device.id)).toEqual(["z:none"]);
  for (const zone of ["Europe/Berlin", "europe/berlin", "US/Pacific"])
    await registry.register(projectId, apnsToken(zone), { identifiers: { current_time_zone: zone } });
  expect(await zonesOf()).toEqual(["America/Los_Angeles", "Europe/Berlin", "none"]);
});

test("a device that travels has the facet of its new time zone alone, and the list stays small", async () => {
  const { device } = await registry.register(projectId, apnsToken("traveller"));
  const zones = Intl.supportedValuesOf("timeZone").slice(0, 20);
  for (const zone of [...zones, ...zones, "Asia/Tokyo"]) {
    const change = { identifiers: { current_time_zone: zone } };
    await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change });
  }
  expect(await facetsOf(device.id)).toEqual(["z:Asia/Tokyo"]);
  expect(await zonesOf()).toEqual([...zones, "Asia/Tokyo", "none"].sort());
});

test("gateways know the default time zone of a project", async () => {
  const project = await registry.ask(projectRequests.change, { projectId, defaultTimeZone: "Asia/Tokyo" });
  expect(project).toMatchObject({ default_time_zone: "Asia/Tokyo" });
  const record = await registry.settings.get(projectSettingsKey(projectId));
  expect(record?.value).toMatchObject({ defaultTimeZone: "Asia/Tokyo" });
});
