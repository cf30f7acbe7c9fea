import {
  newOperatorToken,
  newSessionSecret,
  newSignInCode,
  type OperatorRole,
  ProjectRole,
  roleIncludes,
} from "@herald/contracts";
import { eventually, expectStatus, type Request, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { roleOf } from "../../services/gateway/src/auth/caller.ts";
import { inParallel } from "../harness/in-parallel.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { callsOf, type RouteCall } from "./route-calls.ts";
import { scale } from "./scale.ts";
import { startTwoPorts, statusOf, type TwoPorts } from "./second-port.ts";
import { restingSnapshotOf, type Snapshot } from "./snapshot.ts";
import { newWorld, type World } from "./world.ts";

/** Refusals of one address in ten seconds. `npm start` allows more, for its own tests. */
const failuresLimit = 300;

let system: System;
let world: World;
let ports: TwoPorts;
beforeAll(async () => {
  system = await startSystem({ env: { HERALD_GATEWAY_LIMIT_FAILURES: String(failuresLimit) } });
  world = await newWorld(system, "Access");
  ports = await startTwoPorts(system, { HERALD_GATEWAY_LIMIT_CLIENTS: "1000000" });
});
afterAll(async () => {
  await ports?.stop();
  await system?.stop();
});
logOnFailure(() => system);

type Session = { readonly cookie: string; readonly "herald-csrf": string };

const signIn = (call: Request, base = system.gateway) => request(base, "POST /admin/v1/sessions", call);
const sessionOf = async (call: Request): Promise<Session> => {
  const { headers, body } = expectStatus(await signIn(call), 201);
  return { cookie: headers.get("set-cookie")?.split(";")[0] ?? "", "herald-csrf": body.data.csrf_token };
};
const newOperator = async (
  role: OperatorRole,
  projects: readonly { readonly id: string; readonly role: string }[] = [],
) => {
  const { id, token } = await system.operator({ name: `Hostile ${role}`, role, projects });
  return { id, token, session: await sessionOf({ token }) };
};
const newCode = async (): Promise<string> =>
  expectStatus(await system.admin("POST /sessions/codes"), 201).body.data.code;
const call = ({ method, path, body }: RouteCall, headers: Record<string, string>, base = system.gateway) =>
  request(base, `${method} ${path}`, { headers, ...(body === undefined ? {} : { body }) });
const changes = ({ method }: RouteCall) => method !== "GET" && method !== "HEAD";
/** The header that an operator needs outside of `/admin/v1`. */
const forProject = ({ path }: RouteCall): Record<string, string> =>
  path.startsWith("/api/") ? { "herald-project": world.project.id } : {};
/** The state without audit rows, which the attack's allowed sign-ins leave, and without what jobs write at their own times. */
const stateOf = async (): Promise<Snapshot> => {
  const all = Object.entries(await restingSnapshotOf(system));
  return Object.fromEntries(all.filter(([name]) => !/\.(auditRows|auditHeads|positions|retentionClaims)$/.test(name)));
};

test("viewers and operators above their role change nothing on any route", async ({ task }) => {
  const before = await stateOf();
  const wrong: string[] = [];
  let tried = 0;
  for (const role of ["viewer", "operator"] as const) {
    const { token, session } = await newOperator(role);
    const operators = await stateOf();
    const above = callsOf(world).filter(({ route }) => {
      const needed = roleOf(route.access);
      return needed !== undefined && !roleIncludes(role, needed);
    });
    const ways: [string, Record<string, string>][] = [
      ["by token", { authorization: `Bearer ${token}` }],
      ["by session", session],
      ["by token of a claimed role", { authorization: `Bearer ${token}`, "herald-role": "admin", "x-role": "admin" }],
    ];
    await inParallel(
      above.flatMap((one) => ways.map((way) => [one, way] as const)),
      8,
      async ([one, [way, headers]]) => {
        tried++;
        const { status } = await call(one, { ...headers, ...forProject(one) });
        if (status !== 403) wrong.push(`${role} ${way} ${one.route.operationId}: ${status}`);
      },
    );
    expect(await stateOf()).toEqual(operators);
  }
  expect(wrong).toEqual([]);
  expect(tried).toBeGreaterThan(100);
  expect(Object.keys(await stateOf()).sort()).toEqual(Object.keys(before).sort());
  show(task, { requests: tried, refused: tried });
});

test("members beyond their grants learn and change nothing on any route", async ({ task }) => {
  const elsewhere = { id: (await system.project("Elsewhere")).id, role: "admin" };
  const leaked: string[] = [];
  let tried = 0;
  for (const grant of [undefined, ...ProjectRole.options]) {
    const projects = [elsewhere, ...(grant === undefined ? [] : [{ id: world.project.id, role: grant }])];
    const { token, session } = await newOperator("member", projects);
    const before = await stateOf();
    const closed = callsOf(world).flatMap((one) => {
      const { access, path } = one.route;
      const needed = roleOf(access);
      if (needed === undefined || needed === "member") return [];
      const inProject = path.startsWith("/api/") ? needed : access.grant;
      if (grant && inProject && inProject !== "approve" && roleIncludes(grant, inProject)) return [];
      const named = access.grant && !path.includes("{id}") ? ["", `?project_id=${world.project.id}`] : [""];
      return named.map((query) => ({ ...one, path: one.path + query }));
    });
    const ways: Record<string, string>[] = [{ authorization: `Bearer ${token}` }, session];
    await inParallel(
      closed.flatMap((one) => ways.map((way) => [one, way] as const)),
      8,
      async ([one, way]) => {
        tried++;
        const { status, text } = await call(one, { ...way, ...forProject(one) });
        const shows = text.includes(world.content) || (grant === undefined && text.includes(world.project.id));
        if ((status !== 403 && status !== 404) || shows)
          leaked.push(`${grant} ${one.method} ${one.path}: ${status} ${text.slice(0, 200)}`);
      },
    );
    const listed = expectStatus(await request(system.gateway, "GET /admin/v1/projects", { token }), 200).body.data;
    expect(listed.map(({ id }: { id: string }) => id).sort()).toEqual(projects.map(({ id }) => id).sort());
    expect(await stateOf()).toEqual(before);
  }
  expect(leaked).toEqual([]);
  expect(tried).toBeGreaterThan(400);
  show(task, { requests: tried, leaks: leaked.length });
});

test("a session without CSRF token or from another origin changes nothing", async ({ task }) => {
  const { session } = await newOperator("admin");
  const other = await newOperator("admin");
  const { cookie } = session;
  const before = await stateOf();
  const attempts = callsOf(world)
    .filter(({ route }) => roleOf(route.access) !== undefined)
    .flatMap((one) => {
      const stolen: Record<string, string>[] = [
        { ...session, "sec-fetch-site": "cross-site" },
        { ...session, "sec-fetch-site": "same-site" },
        { ...session, origin: "https://evil.example" },
        { ...session, origin: "null" },
      ];
      const without: Record<string, string>[] = [
        { cookie },
        { cookie, "herald-csrf": "" },
        { cookie, "herald-csrf": other.session["herald-csrf"] },
        { cookie, "herald-csrf": cookie.split("=")[1] ?? "" },
      ];
      // A sign-in ignores an earlier session; its own attack is below.
      if (one.route.access.signsIn) return [];
      return [...stolen, ...(changes(one) ? without : [])].map((headers) => ({ one, headers }));
    });
  const wrong: string[] = [];
  await inParallel(attempts, 8, async ({ one, headers }) => {
    const { status } = await call(one, { ...headers, ...forProject(one) });
    if (status !== 403) wrong.push(`${one.route.operationId} ${JSON.stringify(headers)}: ${status}`);
  });
  expect(wrong).toEqual([]);
  expect(await stateOf()).toEqual(before);
  show(task, { requests: attempts.length, refused: attempts.length });
});

test("no login CSRF, and a planted cookie is no session", async ({ task }) => {
  const { token } = await newOperator("admin");
  const foreign: Record<string, string>[] = [
    { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
    { "sec-fetch-site": "same-site" },
    { origin: "https://evil.example" },
    { origin: "null" },
  ];
  for (const headers of foreign)
    for (const type of ["application/json", "text/plain"]) {
      const body = JSON.stringify({ code: await newCode() });
      const answer = await signIn({ body, headers: { ...headers, "content-type": type } });
      expect([JSON.stringify(headers), type, answer.headers.get("set-cookie")]).toEqual([
        JSON.stringify(headers),
        type,
        null,
      ]);
    }

  const planted = `herald_session=${newSessionSecret()}`;
  const { headers } = expectStatus(await signIn({ token, headers: { cookie: planted } }), 201);
  expect(headers.get("set-cookie")).not.toContain(planted);
  const own = await sessionOf({ token });
  const mine = expectStatus(await signIn({ token, headers: { cookie: own.cookie } }), 201);
  expect(mine.headers.get("set-cookie")).not.toContain(own.cookie);
  const current = (cookie: string) =>
    request(system.gateway, "GET /admin/v1/sessions/current", { headers: { cookie } });
  expect((await current(planted)).status).toBe(401);
  show(task, { requests: foreign.length * 2 + 3 });
});

test("a sign-in link exchanged many times at once signs in once", async ({ task }) => {
  const links = scale(20, 5);
  let refused = 0;
  for (let link = 0; link < links; link++) {
    const code = await newCode();
    const bases = Array.from({ length: 12 }, (_, at) => (at % 2 ? system.gateway : ports.operators));
    const answers = await Promise.all(bases.map((base) => signIn({ body: { code } }, base)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    refused += answers.filter(({ status }) => status === 401 || status === 429).length;
    expect((await signIn({ body: { code } }, ports.operators)).status).not.toBe(201);
  }
  expect(refused).toBe(links * 11);
  show(task, { links, refused });
});

test("the port for apps has no operator route and takes no operator credential", async ({ task }) => {
  const { token, session } = await newOperator("admin");
  const spelled = (path: string) => [
    path,
    `/${path}`,
    `${path}/`,
    `/api/v1/..${path}`,
    `/./${path.slice(1)}`,
    path.replace("/admin", "/%61dmin"),
    path.replace("/admin/", "/ADMIN/"),
    path.replace("/admin/", "/admin%2F"),
    path.replace("/admin/", "/admin;x=1/"),
    `${ports.operators}${path}`,
  ];
  const credentials: Record<string, string>[] = [
    { authorization: `Bearer ${system.adminToken}` },
    { authorization: `Bearer ${token}` },
    session,
  ];
  const admin = callsOf(world).filter(({ path }) => path.startsWith("/admin/"));
  const wrong: string[] = [];
  let requests = 0;
  await inParallel(admin, 4, async ({ method, path }) => {
    for (const one of spelled(path))
      for (const headers of one === path ? credentials : credentials.slice(0, 1)) {
        requests++;
        const status = await statusOf(ports.apps, method, one, headers);
        if (status !== 404 && status !== 400) wrong.push(`${method} ${one}: ${status}`);
      }
  });
  for (const one of callsOf(world).filter(({ route, path }) => path.startsWith("/api/") && roleOf(route.access)))
    for (const headers of credentials) {
      requests++;
      const { status } = await call(one, { ...headers, ...forProject(one) }, ports.apps);
      if (status !== 401 && status !== 403 && status !== 429) wrong.push(`${one.route.operationId}: ${status}`);
    }
  expect(wrong).toEqual([]);
  show(task, { requests, refused: requests });
});

test("a project token that names another project acts for its own alone", async ({ task }) => {
  const stranger = await system.project("Stranger");
  const calls = callsOf(world).filter(({ route }) => route.access.by.includes("project"));
  const before = await restingSnapshotOf(system, world.project.id);
  const leaked: string[] = [];
  await inParallel(calls, 8, async (one) => {
    const { status, text } = await call(one, { authorization: `Bearer ${stranger.token}`, ...forProject(one) });
    if (text.includes(world.content) || text.includes(world.project.id) || status >= 500)
      leaked.push(`${one.route.operationId}: ${status} ${text.slice(0, 200)}`);
  });
  expect(leaked).toEqual([]);
  expect(await restingSnapshotOf(system, world.project.id)).toEqual(before);
  show(task, { routes: calls.length });
});

test("an operator's stream ends with the role", async ({ task }) => {
  const { id, token, session } = await newOperator("viewer");
  const headers = { "herald-project": world.project.id };
  const streams = await Promise.all(
    [{ authorization: `Bearer ${token}` }, session].map((credential) =>
      fetch(`${system.gateway}/api/v1/events`, { headers: { ...headers, ...credential } }),
    ),
  );
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  expectStatus(await system.admin(`DELETE /operators/${id}`), 204);
  const ended = Promise.all(streams.map((stream) => stream.text().catch(() => "cut")));
  await eventually(
    async () => {
      await world.project.register();
      expect(await Promise.race([ended, Promise.resolve("still open")])).not.toBe("still open");
    },
    { timeoutMs: 60_000 },
  );
  show(task, { streams: streams.length, left: 0 });
});

test("guessed credentials: none accepted, cheap, and operators can still sign in", async ({ task }) => {
  const guesses = scale(50_000, 1_000);
  const { token, session } = await newOperator("admin");
  const statuses: Record<string, number> = {};
  const guess = async (_: unknown, at: number) => {
    const ways: Request[] = [
      { token: newOperatorToken() },
      { headers: { cookie: `herald_session=${newSessionSecret()}` } },
      { body: { code: newSignInCode() } },
    ];
    const way = ways[at % 3] ?? {};
    const { status } = way.body ? await signIn(way) : await request(system.gateway, "GET /admin/v1/projects", way);
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  const begun = performance.now();
  const each = await cpuFor(system, "gateway", guesses, () => inParallel(Array.from({ length: guesses }), 16, guess));
  const windows = Math.ceil((performance.now() - begun) / 10_000) + 1;
  expect(Object.keys(statuses).toSorted()).toEqual(["401", "429"]);
  // The limit applies to all three kinds together.
  expect(statuses["401"] ?? 0).toBeLessThanOrEqual(failuresLimit * windows);
  expect((await request(system.gateway, "GET /admin/v1/projects", { token })).status).toBe(200);
  expect((await request(system.gateway, "GET /admin/v1/projects", { headers: session })).status).toBe(200);
  expect((await signIn({ token })).status).toBe(201);
  show(task, { guesses, "401": statuses["401"] ?? 0, "429": statuses["429"] ?? 0, "CPU ms a guess": each });
});
