import {
  settingsFingerprint as providersFingerprint,
  secretHash,
  tokenFingerprint as tokensFingerprint,
} from "@herald/contracts";
import { expect, test } from "vitest";
import { diff, type ProjectState } from "./diff.ts";
import type { ProjectFile } from "./project-file.ts";
import { settingsFingerprint, tokenFingerprint } from "./sources.ts";

const at = "2030-01-31T09:00:00.000Z";
const project = {
  id: "prj_1",
  key: "shop",
  name: "Shop",
  open_registration: true,
  protected_metadata: ["b", "a"],
  receipts: false,
  default_time_zone: "UTC",
  created_at: at,
};
const empty: ProjectState = {
  project,
  limits: [],
  kinds: [],
  providers: [],
  tokens: [],
  webhooks: [],
  written: new Map(),
};
const token = (id: string, secret: string, change = {}) => ({
  ...{ id, name: "backend", scopes: ["send"], fingerprint: tokenFingerprint(secret), created_at: at, ...change },
});
const webhook = { id: "whk_1", url: "https://a.example/", events: null, enabled: true, created_at: at, updated_at: at };
const limit = { name: "sends", description: "", limit: 5, default: 7, counted_by: "gateway" };

const file = (sections: Partial<ProjectFile>): ProjectFile => ({ herald: 1, project: { key: "shop" }, ...sections });
const shown = (sections: Partial<ProjectFile>, state: Partial<ProjectState> = {}) => {
  const { changes, removals, problems } = diff(file(sections), { ...empty, ...state } as ProjectState);
  const text = ({ sign, what, detail }: (typeof changes)[number]) => [sign, what, detail].join("|");
  return { changes: changes.map(text), removals: removals.map(text), problems: problems.map(({ message }) => message) };
};
const none = { changes: [], removals: [], problems: [] };
const backend = (change = {}) => ({ tokens: [{ name: "backend", scopes: ["send"] as const, ...change }] });
const secret = { write: "backend.token" };

test("fingerprints are those of Herald", () => {
  const settings = { b: [{ d: 1, c: 2 }], a: "x" };
  expect(settingsFingerprint(settings)).toBe(providersFingerprint({ a: "x", b: [{ c: 2, d: 1 }] }));
  expect(tokenFingerprint("hpt_a")).toBe(tokensFingerprint(secretHash("hpt_a")));
});

test("an absent section is left as it is", () => {
  const state = {
    limits: [limit],
    tokens: [token("tok_1", "a")],
    webhooks: [webhook],
  } as unknown as Partial<ProjectState>;
  expect(shown({}, state)).toEqual(none);
});

test("a project has the fields that the file names", () => {
  expect(shown({ project: { key: "shop", protected_metadata: ["a", "b"], stale_after: null } })).toEqual(none);
  expect(shown({ project: { key: "shop", name: "New", stale_after: "90d" } }).changes).toEqual([
    "~|project|name Shop → New, stale_after – → 90d",
  ]);
  expect(shown({ limits: { sends: 1, devices: null } }, { project: undefined }).changes).toEqual([
    "+|project shop|shop",
    "~|limits|sends 1",
  ]);
});

test("a file may lower the number of devices that need approval, not raise or remove it", () => {
  const state = { project: { ...project, approval: { devices: 10_000 } } };
  const asks = (devices: number | null) => ({
    project: { key: "shop", approval: devices === null ? null : { devices } },
  });
  expect(shown({}, state)).toEqual(none);
  expect(shown(asks(10_000), state)).toEqual(none);
  expect(shown(asks(1_000), state).changes).toEqual(['~|project|approval {"devices":10000} → {"devices":1000}']);
  expect(shown(asks(1_000)).changes).toEqual(['~|project|approval – → {"devices":1000}']);
  expect(shown(asks(null))).toEqual(none);
  for (const [devices, wanted] of [
    [20_000, "20000"],
    [null, "off"],
  ] as const)
    expect(shown(asks(devices), state).problems).toEqual([
      expect.stringContaining(`an admin runs \`herald project update prj_1 --approval ${wanted}\``),
    ]);
});

test("limits of their own that the file does not name go back to the default", () => {
  const state = { limits: [limit] } as unknown as Partial<ProjectState>;
  expect(shown({ limits: { sends: 5 } }, state)).toEqual(none);
  expect(shown({ limits: { sends: null } }, state).changes).toEqual(["~|limits|sends 5 → default"]);
  expect(shown({ limits: { devices: null } }, state)).toEqual({ ...none, removals: ["-|limit sends|5 → default"] });
});

test("a provider differs by its fingerprint; Web Push without a key by what is shown", () => {
  const apns = { bundle_id: "a.b", private_key: "p" };
  const views = (settings: object, fingerprint = "") =>
    [
      { provider: "apns", settings, fingerprint, status: "active", updated_at: at },
    ] as unknown as ProjectState["providers"];
  expect(shown({ providers: { apns } }, { providers: views({}, settingsFingerprint(apns)) })).toEqual(none);
  expect(shown({ providers: { apns } }, { providers: views({ bundle_id: "x.y" }) }).changes).toEqual([
    "~|provider apns|bundle_id x.y → a.b",
  ]);
  expect(shown({ providers: { apns } }, { providers: views({ bundle_id: "a.b" }) }).changes).toEqual([
    "~|provider apns|other files or settings",
  ]);
  expect(shown({ providers: {} }, { providers: views({}) }).removals).toEqual(["-|provider apns|"]);
  const webpush = { provider: "webpush", settings: { subject: "a", public_key: "k", keys: [] } };
  const state = { providers: [webpush] } as unknown as Partial<ProjectState>;
  expect(shown({ providers: { webpush: { subject: "a" } } }, state)).toEqual(none);
  expect(shown({ providers: { webpush: { subject: "b" } } }, state).changes).toEqual([
    "~|provider webpush|subject a → b",
  ]);
});

test("a token is that of its file; older ones of its name are what it replaced", () => {
  const written = new Map([["backend.token", "b"]]);
  const [older, own, newer] = [token("tok_1", "a"), token("tok_2", "b"), token("tok_3", "c")];
  const tokens = [older, own, newer] as unknown as ProjectState["tokens"];
  expect(shown(backend({ secret }), { tokens, written }).changes).toEqual([
    "-|token backend|what backend.token replaced: tok_1",
  ]);
  expect(shown(backend({ secret }), { tokens: tokens.slice(1), written })).toEqual(none);
  expect(shown(backend({ secret }), { tokens }).changes).toEqual([
    expect.stringMatching(/^~\|token backend\|a new one/),
  ]);
  expect(shown(backend({ secret })).changes).toEqual(["+|token backend|its secret into backend.token"]);
  expect(shown({ tokens: [] }, { tokens: tokens.slice(0, 1) }).removals).toEqual(["-|token backend|tok_1"]);
});

test("a token that never changes is not changed in silence", () => {
  const written = new Map([["backend.token", "a"]]);
  const tokens = [token("tok_1", "a", { scopes: ["read"] })] as unknown as ProjectState["tokens"];
  for (const [entry, state, message] of [
    [{}, {}, "it does not exist; add"],
    [{}, { tokens }, "it has other scopes"],
    [{ secret }, { tokens, written }, "it has other scopes or another expiry, and a token never changes; move"],
    [{ secret }, { written }, "backend.token exists and has no token of this name"],
  ] as const)
    expect(shown(backend(entry), state)).toEqual({ ...none, problems: [expect.stringContaining(message)] });
});

test("a webhook is that of its URL", () => {
  const webhooks = [webhook] as unknown as ProjectState["webhooks"];
  const url = "https://a.example/";
  const written = new Map([["hook.secret", "s"]]);
  const write = { secret: { write: "hook.secret" } };
  expect(shown({ webhooks: [{ url }] }, { webhooks })).toEqual(none);
  expect(shown({ webhooks: [{ url, ...write }] }, { webhooks, written })).toEqual(none);
  expect(shown({ webhooks: [{ url, enabled: false, ...write }] }, { webhooks }).changes).toEqual([
    `~|webhook ${url}|enabled true → false`,
    `~|webhook ${url}|a new secret into hook.secret; the old one is valid for a day`,
  ]);
  expect(shown({ webhooks: [] }, { webhooks }).removals).toEqual([`-|webhook ${url}|whk_1`]);
  expect(shown({ webhooks: [{ url, enabled: false, ...write }] }).changes).toHaveLength(2);
  expect(shown({ webhooks: [{ url, ...write }] }, { written }).problems).toEqual([
    expect.stringContaining("move that file"),
  ]);
  expect(shown({ webhooks: [{ url }] }).problems).toEqual([expect.stringContaining("add `secret")]);
});

test("kinds are declared, changed as a whole, and removed where the file does not name them", () => {
  const offers = { kind: "offers", title: "Offers", on_by_default: true, critical: false };
  const capped = { ...offers, frequency_cap: { per: "day", count: 2 }, quiet_hours: null };
  const kinds = [{ kind: "offers", title: "Offers" }] as const;
  expect(shown({ kinds }).changes).toEqual(["+|kind offers|Offers"]);
  expect(shown({ kinds }, { kinds: [offers] })).toEqual(none);
  expect(shown({ kinds }, { kinds: [capped] }).changes).toEqual(["~|kind offers|quiet_hours –, frequency_cap –"]);
  const named = [{ ...kinds[0], quiet_hours: null, frequency_cap: { count: 2, per: "day" as const } }];
  expect(shown({ kinds: named }, { kinds: [capped] })).toEqual(none);
  expect(shown({ kinds: [] }, { kinds: [offers] }).removals).toEqual(["-|kind offers|Offers"]);
});
