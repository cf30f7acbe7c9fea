import { describe, expect, test } from "vitest";
import { applyChange, applyRegistration, newDevice } from "./device-change.ts";
import type { ChangeResult, DeviceState } from "./device-state.ts";

const then = new Date("2030-01-01T00:00:00Z");
const now = new Date("2030-01-02T00:00:00Z");

const stateOf = (result: ChangeResult): DeviceState => {
  if (!("state" in result)) throw new Error(JSON.stringify(result));
  return result.state;
};

const known: DeviceState = stateOf(newDevice("ios", { token: "aa".repeat(8), topics: [] }, then));

describe("the key of a Web Push subscription", () => {
  const keys = { p256dh: "p".repeat(87), auth: "a".repeat(22) };
  const web = stateOf(
    newDevice("web", { token: "https://push.example/1", topics: [], keys, currentVapidKeyId: "current" }, then),
  );
  const idOf = (result: ChangeResult) => stateOf(result).vapidKeyId;

  test("is the one that the app names, or else the current one", () => {
    expect(web.vapidKeyId).toBe("current");
    const said = {
      token: "https://push.example/2",
      topics: [],
      keys,
      vapidKeyId: "said",
      currentVapidKeyId: "current",
    };
    expect(idOf(newDevice("web", said, then))).toBe("said");
    expect(idOf(newDevice("ios", said, then))).toBeUndefined();
  });

  test("stays while the endpoint stays, even if another key is current", () => {
    const again = { token: web.token, topics: [], keys, currentVapidKeyId: "another" };
    expect(idOf(applyRegistration(web, again, now))).toBe("current");
    expect(idOf(applyRegistration(web, { ...again, vapidKeyId: "said" }, now))).toBe("said");
    const { vapidKeyId: _, ...unnamed } = web;
    expect(idOf(applyRegistration(unnamed, again, now))).toBeUndefined();
  });

  test("changes with a new subscription", () => {
    const moved = { token: "https://push.example/9", currentVapidKeyId: "another" };
    expect(idOf(applyRegistration(web, { ...moved, topics: [] }, now))).toBe("another");
    expect(applyRegistration(web, { ...moved, topics: [] }, now)).toMatchObject({ changed: ["token", "vapid_key_id"] });
    expect(idOf(applyChange(web, moved, now))).toBe("another");
    expect(idOf(applyChange(web, { token: moved.token }, now))).toBeUndefined();
    expect(idOf(applyChange({ ...known, vapidKeyId: "x" }, { ...moved, token: "bb".repeat(8) }, now))).toBeUndefined();
  });

  test("can be corrected by a change, together with new keys", () => {
    const other = { p256dh: "q".repeat(87), auth: "b".repeat(22) };
    const result = applyChange(web, { keys: other, vapidKeyId: "said" }, now);
    expect(result).toMatchObject({ changed: ["keys", "vapid_key_id"], state: { keys: other, vapidKeyId: "said" } });
    expect(applyChange(web, { metadata: {} }, now)).toMatchObject({ state: web, changed: [] });
    expect(applyChange(known, { keys: other }, now)).toEqual({ problems: ["device.keys: is only for platform web"] });
  });
});
