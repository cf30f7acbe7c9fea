import { newDeviceId, newProjectId, newTokenId } from "@herald/contracts";
import { expect, test } from "vitest";
import { ownDevice } from "./caller.ts";

const now = new Date();
const [projectId, deviceId, another] = [newProjectId(now), newDeviceId(now), newDeviceId(now)];

test("a device acts for itself, and a project for each", () => {
  const device = { kind: "device", projectId, deviceId } as const;
  expect(ownDevice(device, deviceId)).toBe(deviceId);
  expect(() => ownDevice(device, another)).toThrow(
    expect.objectContaining({
      code: "forbidden",
      message: "authorization: a device credential can only act for its own device",
    }),
  );
  const project = { kind: "project", projectId, tokenId: newTokenId(now), scopes: [] } as const;
  expect(ownDevice(project, another)).toBe(another);
});
