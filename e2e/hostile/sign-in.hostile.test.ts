import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expectStatus, request } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { percentile } from "../../bench/src/table.ts";
import { inParallel } from "../harness/in-parallel.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { memoryOfProcess } from "./memory.ts";
import { scale } from "./scale.ts";
import { startTwoPorts, type TwoPorts } from "./second-port.ts";
import { test } from "./shared-system.ts";
import { startStrangeProvider } from "./strange-identity-provider.ts";

const [clientId, clientSecret] = ["herald", "a secret of the client, not of people"];

type StrangeProvider = Awaited<ReturnType<typeof startStrangeProvider>>;

let system: System;
let provider: StrangeProvider;
let gateway: TwoPorts;

const startGateway = (issuer: string, groups: string, failures = 100_000) =>
  startTwoPorts(system, (operators) => ({
    HERALD_GATEWAY_LIMIT_FAILURES: `${failures}`,
    HERALD_GATEWAY_LIMIT_CLIENTS: "100000",
    HERALD_GATEWAY_OIDC_ISSUER: issuer,
    HERALD_GATEWAY_OIDC_CLIENT_ID: clientId,
    HERALD_GATEWAY_OIDC_CLIENT_SECRET: clientSecret,
    HERALD_GATEWAY_OIDC_URL: operators,
    HERALD_GATEWAY_OIDC_GROUPS_FILE: groups,
  }));

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  provider = await startStrangeProvider(clientId, clientSecret);
  const groups = join(system.folder, "groups.yaml");
  await writeFile(groups, "staff: { role: admin }\n");
  gateway = await startGateway(provider.issuer, groups);
});
afterAll(async () => {
  await gateway?.stop();
  provider?.stop();
});
logOnFailure(() => system);

type Begun = { readonly state: string; readonly nonce: string; readonly cookie: string };

const begin = async (base = gateway.operators): Promise<Begun> => {
  const response = await fetch(`${base}/admin/v1/sign-in/oidc`, { redirect: "manual" });
  expect(response.status).toBe(302);
  const { searchParams } = new URL(response.headers.get("location") ?? "");
  expect(searchParams.get("code_challenge_method")).toBe("S256");
  const [cookie = ""] = response.headers.get("set-cookie")?.split(";") ?? [];
  return { state: searchParams.get("state") ?? "", nonce: searchParams.get("nonce") ?? "", cookie };
};

let codes = 0;
const finish = async ({ state, cookie }: Omit<Begun, "nonce">, code = `code-${++codes}`, more = "") => {
  const search = `${new URLSearchParams({ state, code })}${more}`;
  const url = `${gateway.operators}/admin/v1/sign-in/callback?${search}`;
  const response = await fetch(url, { redirect: "manual", headers: { cookie } });
  const cookies = response.headers.getSetCookie().filter((one) => /herald_session=hss_/.test(one));
  return { status: response.status, text: await response.text(), session: cookies[0]?.split(";")[0] };
};

const staff = { groups: ["staff"] };
const now = () => Math.floor(Date.now() / 1_000);

/** What the provider answers to the code of a sign-in with this nonce. */
const attacks: readonly (readonly [string, (nonce: string) => void])[] = [
  ["the algorithm none", (nonce) => answer(nonce, {}, provider.signings.none)],
  ["HS256 with the public key", (nonce) => answer(nonce, {}, provider.signings.publicKeyAsSecret())],
  ["HS256 with the client secret", (nonce) => answer(nonce, {}, provider.signings.clientSecret())],
  ["a foreign key under a known id", (nonce) => answer(nonce, {}, provider.signings.foreignKey())],
  [
    "a foreign key by its address",
    (nonce) => answer(nonce, {}, provider.signings.foreignKey({ jku: "http://127.0.0.1:9/k" })),
  ],
  ["a foreign key in the header", (nonce) => answer(nonce, {}, provider.signings.ownKeyInHeader())],
  ["another issuer", (nonce) => answer(nonce, { iss: "https://accounts.google.com" })],
  ["no issuer", (nonce) => answer(nonce, { iss: undefined })],
  ["another audience", (nonce) => answer(nonce, { aud: "another-client" })],
  ["an audience of two, for another", (nonce) => answer(nonce, { aud: [clientId, "other"], azp: "other" })],
  ["another nonce", () => answer("another-nonce")],
  ["no nonce", (nonce) => answer(nonce, { nonce: undefined })],
  ["expired", (nonce) => answer(nonce, { iat: now() - 7_200, exp: now() - 3_600 })],
  ["no expiry", (nonce) => answer(nonce, { exp: undefined })],
  ["not valid yet", (nonce) => answer(nonce, { nbf: now() + 3_600 })],
  ["issued in the future", (nonce) => answer(nonce, { iat: now() + 3_600, exp: now() + 7_200 })],
  ["no subject", (nonce) => answer(nonce, { sub: undefined })],
  ["an empty subject", (nonce) => answer(nonce, { sub: "" })],
  ["a subject that is no text", (nonce) => answer(nonce, { sub: { $ne: null } })],
  ["a long subject", (nonce) => answer(nonce, { sub: "s".repeat(300) })],
  ["1 MB", (nonce) => answer(nonce, { padding: "x".repeat(1_048_576) })],
  [
    "10,000 groups",
    (nonce) => answer(nonce, { groups: ["staff", ...Array.from({ length: 10_000 }, (_, at) => `g${at}`)] }),
  ],
  ["groups that are no list", (nonce) => answer(nonce, { groups: { staff: true } })],
  ["groups of the language itself", (nonce) => answer(nonce, { groups: ["__proto__", "constructor", "toString"] })],
  ["a changed token", (nonce) => provider.answerToken(tampered(nonce))],
  ["no identity token", () => provider.answerToken(undefined)],
  ["text that is no token", () => provider.answerToken("a.b.c")],
  ["a page", () => provider.answerWith(() => ({ type: "text/html", body: "<h1>Welcome</h1>" }))],
  ["an error", () => provider.answerWith(() => ({ status: 500, body: "{}" }))],
  [
    "another address",
    () => provider.answerWith(() => ({ status: 307, body: "", location: "http://127.0.0.1:9/token" })),
  ],
];

const answer = (
  nonce: string,
  claims: Readonly<Record<string, unknown>> = {},
  signing?: Parameters<StrangeProvider["token"]>[1],
) => provider.answerToken(provider.token(provider.claims(nonce, { ...staff, ...claims }), signing));

/** A good token whose claims were changed after it was signed. */
const tampered = (nonce: string): string => {
  const [header, , signature] = provider.token(provider.claims(nonce, { groups: [] })).split(".");
  const claims = Buffer.from(JSON.stringify(provider.claims(nonce, { ...staff, sub: "root" }))).toString("base64url");
  return [header, claims, signature].join(".");
};

const isSignedIn = async (cookie: string | undefined) =>
  (await request(gateway.operators, "GET /admin/v1/sessions/current", { headers: { cookie: cookie ?? "" } })).status ===
  200;

/** The library that the first sign-in loads, and what a hundred people leave behind. */
const signInsMb = 64;

test("ordinary sign-ins cost the gateway little memory", async ({ task }) => {
  const memory = async () => (await memoryOfProcess(gateway.pid)) ?? Number.NaN;
  const people = scale(100, 30);
  for (let request = 0; request < people; request++) await fetch(`${gateway.operators}/admin/v1/sign-in`);
  const before = await memory();
  const times: number[] = [];
  let first = before;
  for (let person = 0; person < people; person++) {
    const begun = performance.now();
    const sent = await begin();
    answer(sent.nonce, { sub: `person-${person % 10}` });
    expect((await finish(sent)).session).toBeDefined();
    times.push(performance.now() - begun);
    if (person === 0) first = await memory();
  }
  const after = await memory();
  show(task, {
    "sign-ins": people,
    "p50 ms": Math.round(percentile(times, 50)),
    "p99 ms": Math.round(percentile(times, 99)),
    "MB before": before,
    "MB after the first": first,
    "MB after": after,
  });
  expect(after - before).toBeLessThan(signInsMb);
});

test("only valid identity tokens begin a session, also with rotated keys", async ({ task }) => {
  const begun = await begin();
  answer(begun.nonce);
  const good = await finish(begun);
  expect([good.status, await isSignedIn(good.session)]).toEqual([303, true]);

  const wrong: string[] = [];
  for (const [name, prepare] of attacks) {
    const one = await begin();
    prepare(one.nonce);
    const { status, session, text } = await finish(one);
    if (session !== undefined || status < 400 || status === 500) wrong.push(`${name}: ${status} ${session}`);
    if (text.includes("eyJ") || text.includes(clientSecret)) wrong.push(`${name}: shows a secret`);
  }
  expect(wrong).toEqual([]);

  provider.rotate();
  const next = await begin();
  answer(next.nonce);
  expect(await isSignedIn((await finish(next)).session)).toBe(true);
  show(task, { tokens: attacks.length, sessions: 0 });
});

test("a stolen, replayed or foreign callback begins no session", async ({ task }) => {
  const [mine, theirs] = [await begin(), await begin()];
  answer(mine.nonce);
  const tries = [
    () => finish({ state: theirs.state, cookie: mine.cookie }),
    () => finish({ state: mine.state, cookie: theirs.cookie }),
    () => finish({ state: mine.state, cookie: "" }),
    () => finish({ state: "", cookie: mine.cookie }),
    () => finish({ state: mine.state, cookie: "herald_sign_in=e30" }),
    () => finish({ state: mine.state, cookie: `herald_sign_in=${"a".repeat(4_000)}` }),
    () => finish(mine, undefined, "&iss=https://evil.example"),
    () => finish(mine, undefined, "&error=access_denied"),
  ];
  for (const attempt of tries) {
    const { status, session } = await attempt();
    expect([status >= 400, session]).toEqual([true, undefined]);
  }
  const again = await begin();
  answer(again.nonce);
  expect((await finish(again, "once")).status).toBe(303);
  const replayed = await finish(again, "once");
  expect([replayed.status, replayed.session]).toEqual([400, undefined]);
  for (const path of ["//x", "https://evil.example/", "/console/../x", "/\\x", "/console//x", "javascript:alert(1)"]) {
    const url = `${gateway.operators}/admin/v1/sign-in/oidc?return_to=${encodeURIComponent(path)}`;
    expect((await fetch(url, { redirect: "manual" })).status).toBe(422);
  }
  show(task, { tries: tries.length + 7, sessions: 0 });
});

/** Callbacks of one address, of which each would be a request to the provider with the client's secret. */
const callbacks = scale(2_000, 290);
/** Of one address in a window, as is the default. */
const [maxFailures, windowMs] = [100, 10_000];

test("forged and repeated sign-in callbacks do not reach the identity provider", async ({ task }) => {
  const groups = join(system.folder, "groups.yaml");
  const usual = await startGateway(provider.issuer, groups, maxFailures);
  const flood = async (base: string, flowOf: (n: number) => { readonly state: string; readonly cookie: string }) => {
    const before = provider.asked().token;
    const statuses: Record<number, number> = {};
    await inParallel(Array.from({ length: callbacks }), 20, async (_, n) => {
      const { state, cookie } = flowOf(n);
      const url = `${base}/admin/v1/sign-in/callback?${new URLSearchParams({ state, code: `invented-${++codes}` })}`;
      const { status } = await fetch(url, { redirect: "manual", headers: { cookie } });
      statuses[status] = (statuses[status] ?? 0) + 1;
    });
    return { asked: provider.asked().token - before, statuses: JSON.stringify(statuses) };
  };
  const invented = (n: number) => {
    const flow = { state: `s${n}`, nonce: "n", verifier: "v".repeat(43), returnTo: "/console/" };
    return { state: flow.state, cookie: `herald_sign_in=${Buffer.from(JSON.stringify(flow)).toString("base64url")}` };
  };
  const own = await begin(usual.operators);
  provider.answerWith(() => ({ status: 400, body: '{"error":"invalid_grant"}' }));
  const noFlow = await flood(gateway.operators, invented);
  const began = performance.now();
  const begun = await flood(usual.operators, () => own);
  const windows = 1 + Math.ceil((performance.now() - began) / windowMs);
  await usual.stop();
  show(task, {
    "callbacks of each kind": callbacks,
    "requests to the provider for those with an invented cookie": noFlow.asked,
    answers: noFlow.statuses,
    "for those of one sign-in": begun.asked,
    "their answers": begun.statuses,
  });
  expect(noFlow.asked).toBe(0);
  // On a busy machine the callbacks take longer than one window of the limit.
  expect(begun.asked).toBeLessThanOrEqual(windows * maxFailures);
});

test("visitors of the sign-in page are no load of a failing provider", async ({ task }) => {
  const failing = await startStrangeProvider(clientId, clientSecret);
  failing.discover(undefined);
  const other = await startGateway(failing.issuer, join(system.folder, "groups.yaml"));
  const begins = scale(1_000, 200);
  const began = performance.now();
  const statuses = new Set<number>();
  await inParallel(Array.from({ length: begins }), 20, async () => {
    statuses.add((await fetch(`${other.operators}/admin/v1/sign-in/oidc`, { redirect: "manual" })).status);
  });
  const seconds = (performance.now() - began) / 1_000;
  const { discovery } = failing.asked();
  await other.stop();
  failing.stop();
  show(task, { begins, "requests to the provider": discovery });
  expect([...statuses]).toEqual([503]);
  // A failure is remembered for five seconds.
  expect(discovery).toBeLessThanOrEqual(1 + seconds / 5);
});

test("a false or unencrypted identity provider begins nothing", async ({ task }) => {
  const liar = await startStrangeProvider(clientId, clientSecret);
  const groups = join(system.folder, "groups.yaml");
  for (const lie of [
    { issuer: "https://accounts.google.com" },
    { issuer: `${liar.issuer}/` },
    { token_endpoint: "http://192.0.2.1/token" },
  ]) {
    liar.discover(lie);
    // A gateway remembers what the provider said.
    const other = await startGateway(liar.issuer, groups);
    const response = await fetch(`${other.operators}/admin/v1/sign-in/oidc`, { redirect: "manual" });
    if (response.status === 302) {
      const { state, nonce, cookie } = await begin(other.operators);
      liar.answerToken(liar.token(liar.claims(nonce, staff)));
      const url = `${other.operators}/admin/v1/sign-in/callback?${new URLSearchParams({ state, code: "c" })}`;
      const refused = await fetch(url, { redirect: "manual", headers: { cookie } });
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(refused.headers.getSetCookie().join()).not.toContain("hss_");
    } else expect(response.status).toBe(503);
    await other.stop();
  }
  liar.stop();
  const rows = expectStatus(await system.admin("GET /audit?action=finishSignIn&per_page=100"), 200).body.data;
  expect(rows.some(({ operator }: { operator: { id: string } }) => operator.id === "unknown")).toBe(true);
  show(task, { lies: 3, sessions: 0 });
});
