import { newDeviceId, newProjectId, newTokenId } from "@herald/contracts";
import { expect, test } from "vitest";
import { type Caller, refuseForeign } from "./caller.ts";

const now = new Date();
const [projectId, deviceId, another] = [newProjectId(now), newDeviceId(now), newDeviceId(now)];

test("a device and a user act for themselves, and a project for each", () => {
  const allowed = (caller: Caller, of: Record<string, unknown>) => () => refuseForeign(caller, of);
  const refused = (message: string) => expect.objectContaining({ code: "forbidden", message });
  const device = { kind: "device", projectId, deviceId } as const;
  expect(allowed(device, { deviceId })).not.toThrow();
  expect(allowed(device, { topic: "news" })).not.toThrow();
  expect(allowed(device, { deviceId: another })).toThrow(
    refused("authorization: a device credential can only act for its own device"),
  );
  const user = { kind: "user", projectId, userId: "u_1" } as const;
  expect(allowed(user, { userId: "u_1" })).not.toThrow();
  expect(allowed(user, { userId: "u_2" })).toThrow(
    refused("authorization: a user token can only act for its own user"),
  );
  const project = { kind: "project", projectId, tokenId: newTokenId(now), scopes: [] } as const;
  expect(allowed(project, { deviceId: another, userId: "u_2" })).not.toThrow();
});
