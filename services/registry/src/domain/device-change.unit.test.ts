import { describe, expect, test } from "vitest";
import { applyChange, applyRegistration, newDevice } from "./device-change.ts";
import type { Change, ChangeResult, DeviceState } from "./device-state.ts";
import { unprovenPart } from "./unproven-part.ts";

const then = new Date("2030-01-01T00:00:00Z");
const now = new Date("2030-01-02T00:00:00Z");

const stateOf = (result: ChangeResult): DeviceState => {
  if (!("state" in result)) throw new Error(JSON.stringify(result));
  return result.state;
};

const known: DeviceState = stateOf(
  newDevice("ios", { token: "aa".repeat(8), topics: ["news"], metadata: { plan: "pro", n: 1 } }, then),
);

describe("a new device", () => {
  test("is active, with its data and facets", () => {
    expect(known).toEqual({
      platform: "ios",
      token: "aa".repeat(8),
      tokenUpdatedAt: then,
      lastSeenAt: then,
      status: "active",
      metadata: { plan: "pro", n: 1 },
      identifiers: {},
      facets: ["t:news", "m:plan=pro", "m:n=1", "z:none"],
    });
  });

  test("null in a patch of empty data changes nothing", () => {
    const state = stateOf(newDevice("ios", { token: "x", topics: [], metadata: { a: null, b: { c: null } } }, now));
    expect(state.metadata).toEqual({ b: {} });
  });

  test("a topic that is named twice counts once", () => {
    expect(newDevice("web", { token: "x", topics: ["a", "a"] }, now)).toMatchObject({ subscribed: ["a"] });
  });
});

describe("a known device registers", () => {
  test("merges its data, adds topics, and keeps absent fields", () => {
    const result = applyRegistration(
      { ...known, environment: "sandbox" },
      {
        token: known.token,
        topics: ["sport", "news"],
        metadata: { plan: null, city: "Bonn" },
        identifiers: { os: 17 },
      },
      now,
    );
    expect(result).toMatchObject({ subscribed: ["sport"], changed: ["metadata", "identifiers"] });
    expect(stateOf(result)).toEqual({
      ...known,
      environment: "sandbox",
      tokenUpdatedAt: now,
      lastSeenAt: now,
      metadata: { n: 1, city: "Bonn" },
      identifiers: { os: 17 },
      facets: ["t:news", "t:sport", "m:n=1", "m:city=Bonn", "i:os=17", "z:none"],
    });
  });

  test.each(["requested", "unregistered"] as const)(
    "is active again, though it was %s to be inactive",
    (inactiveReason) => {
      const result = applyRegistration(
        { ...known, status: "inactive", inactiveReason },
        { token: known.token, topics: [] },
        now,
      );
      expect(result).toMatchObject({ changed: ["status"] });
      expect(stateOf(result)).toEqual({ ...known, tokenUpdatedAt: now, lastSeenAt: now });
    },
  );

  test("without proof is active again only if nobody asked for its deactivation", () => {
    const register = (inactiveReason: "requested" | "stale" | "unregistered") =>
      stateOf(
        applyRegistration(
          { ...known, status: "inactive", inactiveReason },
          { token: known.token, topics: [], unproven: true },
          now,
        ),
      );
    expect(register("requested")).toMatchObject({ status: "inactive", inactiveReason: "requested", lastSeenAt: now });
    for (const reason of ["stale", "unregistered"] as const) expect(register(reason).status).toBe("active");
  });

  test("without proof leaves out what decides where its pushes go, whatever is stored", () => {
    const fields = { environment: "sandbox", installationId: "i", tokenKind: "fid" } as const;
    const keys = { p256dh: "p", auth: "a" };
    const sent = { token: "aa", topics: ["news"], vapidKeyId: "k", currentVapidKeyId: "c", ...fields, keys };
    expect(unprovenPart({ ...sent, metadata: { n: 2 } })).toEqual({
      registration: { token: "aa", topics: ["news"], currentVapidKeyId: "c", metadata: { n: 2 }, unproven: true },
      ignored: ["environment", "installation_id", "keys", "token_kind"],
    });
    expect(unprovenPart({ token: "aa", topics: [] }).ignored).toEqual([]);
  });

  test("with another token gets that token", () => {
    const result = applyRegistration(known, { token: "bb", topics: [] }, now);
    expect(result).toMatchObject({ changed: ["token"], state: { token: "bb", tokenUpdatedAt: now } });
  });

  test("with nothing new changes only times", () => {
    expect(applyRegistration(known, { token: known.token, topics: ["news"] }, now)).toMatchObject({
      changed: [],
      subscribed: [],
      same: true,
      state: { tokenUpdatedAt: now, lastSeenAt: now },
    });
    const data = { metadata: { plan: "pro", gone: null }, identifiers: {} };
    expect(applyRegistration(known, { token: known.token, topics: [], ...data }, now)).toMatchObject({ same: true });
  });

  test.each([
    ["another token", { token: "bb" }],
    ["a topic", { topics: ["sport"] }],
    ["metadata", { metadata: { n: 2 } }],
    ["an identifier", { identifiers: { os: 17 } }],
    ["its environment", { environment: "sandbox" as const }],
    ["a user", { user: { by: "project" as const, userId: "ann" } }],
  ])("with %s is not the same", (_, more) => {
    expect(applyRegistration(known, { token: known.token, topics: [], ...more }, now)).toMatchObject({ same: false });
  });

  test("is not the same if it accepts a user token, was inactive, or lacks a facet", () => {
    const user = { by: "token" as const, userId: "ann", issuedAt: 2 };
    const ann = { ...known, userId: "ann", identifiedAt: then, userTokenIat: 1, facets: [...known.facets, "u:ann"] };
    const same = { token: known.token, topics: [] };
    expect(applyRegistration(ann, same, now)).toMatchObject({ same: true });
    expect(applyRegistration(ann, { ...same, user: { ...user, issuedAt: 1 } }, now)).toMatchObject({ same: true });
    expect(applyRegistration(ann, { ...same, user }, now)).toMatchObject({ same: false });
    expect(applyRegistration({ ...ann, facets: known.facets }, same, now)).toMatchObject({ same: false });
    const inactive = { ...known, status: "inactive" as const, inactiveReason: "requested" as const };
    expect(applyRegistration(inactive, same, now)).toMatchObject({ same: false });
  });

  test("may not exceed the limits by merging", () => {
    const half = "x".repeat(9_000);
    const before = { ...known, metadata: { a: half }, identifiers: { a: half } };
    const patch = { token: known.token, topics: [], metadata: { b: half }, identifiers: { b: half } };
    expect(applyRegistration(before, patch, now)).toEqual({
      problems: ["metadata: must be at most 16384 bytes of JSON", "identifiers: must be at most 16384 bytes of JSON"],
    });
  });
});

describe("a change", () => {
  const inactive = (inactiveReason: "requested" | "unregistered"): DeviceState => ({
    ...known,
    status: "inactive",
    inactiveReason,
  });
  const token = "bb".repeat(8);

  test.each<{ name: string; before: DeviceState; change: Change; names: string[]; after: Partial<DeviceState> }>([
    {
      name: "of status",
      before: known,
      change: { status: "inactive" },
      names: ["status"],
      after: { status: "inactive", inactiveReason: "requested" },
    },
    {
      name: "back",
      before: inactive("requested"),
      change: { status: "active" },
      names: ["status"],
      after: { status: "active" },
    },
    { name: "of token", before: known, change: { token }, names: ["token"], after: { token, tokenUpdatedAt: now } },
    {
      name: "of a dead token",
      before: inactive("unregistered"),
      change: { token },
      names: ["token", "status"],
      after: { token, status: "active" },
    },
    {
      name: "of a token while logged out",
      before: inactive("requested"),
      change: { token },
      names: ["token"],
      after: { token, status: "inactive" },
    },
    {
      name: "of token and status",
      before: inactive("unregistered"),
      change: { token, status: "inactive" },
      names: ["token"],
      after: { token, status: "inactive", inactiveReason: "requested" },
    },
    {
      name: "of metadata",
      before: known,
      change: { metadata: { n: 2 } },
      names: ["metadata"],
      after: { metadata: { plan: "pro", n: 2 }, facets: ["t:news", "m:plan=pro", "m:n=2", "z:none"] },
    },
    {
      name: "of a reason alone",
      before: inactive("unregistered"),
      change: { status: "inactive" },
      names: [],
      after: { inactiveReason: "requested" },
    },
  ])("$name", ({ before, change, names, after }) => {
    const result = applyChange(before, change, now);
    expect(result).toMatchObject({ changed: names, state: after });
    expect(stateOf(result)).not.toBe(before);
  });

  test.each<Change>([
    {},
    { metadata: {} },
    { metadata: { n: 1, gone: null } },
    { status: "active" },
    { token: known.token },
  ])("%j changes nothing: the state is the same object", (change) => {
    expect(stateOf(applyChange(known, change, now))).toBe(known);
  });

  test("reports every problem", () => {
    const deep = { a: { b: { c: { d: { e: 1 } } } } };
    expect(applyChange(known, { token: "no hex", metadata: { x: deep } }, now)).toEqual({
      problems: [
        "device.token: must be an APNs device token: 16 to 200 hexadecimal digits",
        "metadata.x.a.b.c.d: may be nested at most 5 deep",
      ],
    });
  });

  test("keeps the keys of a Web Push subscription whose endpoint moves", () => {
    const web: DeviceState = { ...known, platform: "web", keys: { p256dh: "p", auth: "a" } };
    expect(applyChange(web, { token: "https://push.example/2" }, now)).toMatchObject({
      state: { token: "https://push.example/2", keys: { p256dh: "p", auth: "a" } },
    });
  });
});

describe("the user of a device", () => {
  const token = (userId: string, issuedAt: number) => ({ user: { by: "token" as const, userId, issuedAt } });
  const project = (userId: string | null) => ({ user: { by: "project" as const, userId } });
  const ann = stateOf(applyChange(known, token("ann", 100), now));

  test("is set by a token or by the project, and found by a facet that metadata cannot create", () => {
    expect(ann).toMatchObject({ userId: "ann", identifiedAt: now, userTokenIat: 100 });
    expect(ann.facets.filter((facet) => facet.startsWith("u:"))).toEqual(["u:ann"]);
    const byProject = applyChange(known, project("bob"), now);
    expect(byProject).toMatchObject({ changed: ["user_id"], state: { userId: "bob" } });
    expect(stateOf(byProject).userTokenIat).toBeUndefined();
    const claimed = stateOf(applyChange(known, { metadata: { u: "ann", "u:ann": "x" } }, now));
    expect(claimed.facets.some((facet) => facet.startsWith("u:"))).toBe(false);
  });

  test.each<[string, Change, unknown]>([
    ["the same token again changes nothing", token("ann", 100), { state: ann, changed: [] }],
    ["an earlier one of the same user neither", token("ann", 99), { state: ann, changed: [] }],
    ["a later one of the same user is remembered", token("ann", 101), { changed: [], state: { userTokenIat: 101 } }],
    ["another user by a later token", token("bob", 101), { changed: ["user_id"], state: { userId: "bob" } }],
    ["another user by the same moment", token("bob", 100), { usedToken: true }],
    ["another user by an earlier token", token("bob", 99), { usedToken: true }],
    ["the project takes it away", project(null), { changed: ["user_id"], state: { userTokenIat: 100 } }],
  ])("%s", (_, change, expected) => expect(applyChange(ann, change, now)).toMatchObject(expected as object));

  test("after a logout a newer token is required, also to register", () => {
    const out = stateOf(applyChange(ann, project(null), now));
    expect(out.userId).toBeUndefined();
    expect(out.facets).toEqual(known.facets);
    expect(applyChange(out, token("ann", 100), now)).toEqual({ usedToken: true });
    expect(applyRegistration(out, { token: known.token, topics: [], ...token("ann", 100) }, now)).toEqual({
      usedToken: true,
    });
    expect(applyChange(out, token("ann", 101), now)).toMatchObject({ state: { userId: "ann" } });
  });

  test("stays when the device registers again", () => {
    const again = stateOf(applyRegistration(ann, { token: "bb".repeat(8), topics: ["sport"] }, now));
    expect(again.userId).toBe("ann");
    expect(again.facets).toContain("u:ann");
  });
});

describe("facets and bytes", () => {
  const values = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));

  test("a device may have 64 facets, and its user and time zone do not count", () => {
    const user = { user: { by: "project" as const, userId: "ann" } };
    const full = { token: known.token, topics: ["a", "b"], metadata: values(62), ...user };
    expect(stateOf(newDevice("ios", full, now)).facets).toHaveLength(66);
    const over = newDevice("ios", { ...full, topics: ["a", "b", "c"] }, now);
    expect(over).toEqual({ problems: [expect.stringContaining("at most 64 topics and single values")] });
  });

  test("a device above the limit keeps its facets and gets no more", () => {
    const facets = [...known.facets, ...Array.from({ length: 70 }, (_, n) => `t:t${n}`)];
    const early: DeviceState = { ...known, facets };
    expect(applyChange(early, { metadata: { plan: "free" } }, now)).toMatchObject({ changed: ["metadata"] });
    expect(applyChange(early, { metadata: { plan: null } }, now)).toMatchObject({ changed: ["metadata"] });
    expect(applyChange(early, { metadata: { more: 1 } }, now)).toHaveProperty("problems");
  });

  test("a client without a credential may store fewer bytes, and may always store less than before", () => {
    const text = (bytes: number) => ({ text: "x".repeat(bytes) });
    const big = stateOf(applyChange(known, { metadata: text(12_000) }, now));
    expect(applyChange(known, { metadata: text(12_000), maxBytes: 10_240 }, now)).toHaveProperty("problems");
    expect(applyChange(big, { metadata: text(11_000), maxBytes: 10_240 }, now)).toMatchObject({
      changed: ["metadata"],
    });
    expect(applyChange(big, { metadata: { more: "y" }, maxBytes: 10_240 }, now)).toHaveProperty("problems");
  });
});

describe("capabilities", () => {
  const registration = { token: known.token, topics: [] };
  const capable = { ...known, capabilities: "draws receipts" };

  test("are replaced by a registration that names them, and stay without the field", () => {
    const named = applyRegistration(capable, { ...registration, capabilities: ["buttons", "other"] }, now);
    expect(named).toMatchObject({ state: { capabilities: "buttons" }, changed: ["capabilities"] });
    expect(stateOf(applyRegistration(capable, registration, now)).capabilities).toBe("draws receipts");
    expect(
      stateOf(applyRegistration(capable, { ...registration, capabilities: [] }, now)).capabilities,
    ).toBeUndefined();
    expect(stateOf(applyChange(capable, { capabilities: ["receipts"] }, now)).capabilities).toBe("receipts");
    expect(applyChange(capable, { capabilities: ["receipts", "draws"] }, now)).toMatchObject({ changed: [] });
  });

  test("can only be removed by a client that proves just the push token", () => {
    const { registration: part, ignored } = unprovenPart({ ...registration, capabilities: ["buttons", "receipts"] });
    expect(ignored).toEqual(["capabilities"]);
    expect(stateOf(applyRegistration(capable, part, now)).capabilities).toBe("receipts");
    expect(stateOf(applyRegistration(known, part, now)).capabilities).toBeUndefined();
  });
});
