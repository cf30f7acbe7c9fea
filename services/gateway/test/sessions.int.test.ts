import { newSessionSecret, newSignInCode, type OperatorRole } from "@herald/contracts";
import { eventually, type Request } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
let now = () => new Date();

beforeAll(async () => {
  system = await startGatewayTest({ now: () => now(), environment: { HERALD_GATEWAY_TRUST_PROXY: "1" } });
  project = await system.project();
});
afterAll(() => system.stop());
afterEach(() => {
  now = () => new Date();
});

type Session = Awaited<ReturnType<GatewayTest["session"]>>;
const signIn = (call: Request) => system.call("POST /admin/v1/sessions", call);
const current = (headers: Record<string, string>) => system.call("GET /admin/v1/sessions/current", { headers });
const newCode = async (token = adminToken): Promise<string> =>
  (await system.call("POST /admin/v1/sessions/codes", { token })).body.data.code;
const newOperator = async (role: OperatorRole) => {
  const body = { operator: { name: `A ${role}`, role } };
  const made = await system.call("POST /admin/v1/operators", { token: adminToken, body });
  const token: string = made.body.token;
  return { id: made.body.data.id as string, token, session: await system.session(token) };
};
const change = (session: Partial<Session>, headers: Record<string, string> = {}) =>
  system.call(`PATCH /admin/v1/projects/${project.id}`, {
    headers: { ...session, ...headers },
    body: { project: { name: "Renamed" } },
  });

describe("a session", () => {
  test("is a cookie that scripts and other sites cannot use, for 8 hours", async () => {
    const { status, headers, body } = await signIn({ token: adminToken });
    expect(status).toBe(201);
    expect(body.data.operator).toEqual({ id: "root", name: "root", role: "admin", projects: [] });
    const cookie = headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^herald_session=hss_[\w-]+; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Strict$/);
    const leftMs = Date.parse(body.data.expires_at) - Date.now();
    expect(leftMs).toBeGreaterThan(8 * 3_600_000 - 60_000);
    expect(leftMs).toBeLessThanOrEqual(8 * 3_600_000);
    expect(JSON.stringify(body)).not.toContain("hss_");
  });

  test("is sent over https alone when it was made there, and is the host's own", async () => {
    const https = { "x-forwarded-proto": "https" };
    const { headers } = await signIn({ token: adminToken, headers: https });
    expect(headers.get("set-cookie")).toMatch(/^__Host-herald_session=hss_[\w-]+; Path=\/; .*; Secure$/);
    const cookie = headers.get("set-cookie")?.split(";")[0] ?? "";
    expect((await current({ cookie, ...https })).status).toBe(200);
    const { cookie: planted } = await system.session(adminToken);
    expect((await current({ cookie: planted, ...https })).status).toBe(401);
  });

  test("ends when its operator starts 20 others", async () => {
    const { token, session } = await newOperator("viewer");
    const others: Session[] = [];
    for (let n = 0; n < 19; n++) others.push(await system.session(token));
    expect((await current(session)).status).toBe(200);
    const last = await system.session(token);
    await eventually(async () => expect((await current(session)).status).toBe(401));
    for (const one of [...others, last]) expect((await current(one)).status).toBe(200);
  });

  test("says who is signed in, as a token does without a CSRF token", async () => {
    const { id, token, session } = await newOperator("viewer");
    const bySession = await current({ cookie: session.cookie });
    expect(bySession.body.data).toMatchObject({
      operator: { id, name: "A viewer", role: "viewer" },
      csrf_token: session["herald-csrf"],
    });
    const byToken = await current({ authorization: `Bearer ${token}` });
    expect(byToken.body.data).toEqual({ operator: { id, name: "A viewer", role: "viewer", projects: [] } });
  });

  test("ends after 8 hours", async () => {
    const session = await system.session(adminToken);
    now = () => new Date(Date.now() + 8 * 3_600_000 - 60_000);
    expect((await current(session)).status).toBe(200);
    now = () => new Date(Date.now() + 8 * 3_600_000);
    const { status, problem } = await current(session);
    expect([status, problem.errors]).toEqual([401, ["cookie: the session has ended; sign in again"]]);
  });

  test("ends when its operator signs out", async () => {
    const session = await system.session(adminToken);
    const out = await system.call("DELETE /admin/v1/sessions/current", { headers: session });
    expect(out.status).toBe(204);
    expect(out.headers.get("set-cookie")).toMatch(/^herald_session=; .*Expires=Thu, 01 Jan 1970/);
    await eventually(async () => expect((await current(session)).status).toBe(401));
  });

  test("does not exist for a token, so ending it is a 404", async () => {
    const out = await system.call("DELETE /admin/v1/sessions/current", { token: adminToken });
    expect([out.status, out.problem.type]).toEqual([404, "/docs/errors#session-not-found"]);
  });

  test.each(["herald_session=nonsense", `herald_session=${newSessionSecret()}`, "herald_session"])(
    "is refused as %s",
    async (cookie) => {
      expect((await current({ cookie })).status).toBe(401);
    },
  );
});

describe("an operator whose rights change", () => {
  test("keeps the session within the new role", async () => {
    const { id, session } = await newOperator("admin");
    expect((await change(session)).status).toBe(200);
    const body = { operator: { role: "viewer" } };
    await system.call(`PATCH /admin/v1/operators/${id}`, { token: adminToken, body });
    await eventually(async () => {
      const { status, problem } = await change(session);
      expect([status, problem.errors]).toEqual([
        403,
        ["authorization: this needs the role `admin`; the operator A admin has `viewer`"],
      ]);
    });
    expect((await current(session)).body.data.operator.role).toBe("viewer");
  });

  test("keeps the session within the new grants, and lists only the own projects", async () => {
    const { id, session } = await newOperator("member");
    const projects = async () => (await system.call("GET /admin/v1/projects", { headers: session })).body.data;
    expect([(await change(session)).status, await projects()]).toEqual([404, []]);
    const grant = async (role?: string) => {
      const body = { operator: { projects: role === undefined ? [] : [{ id: project.id, role }] } };
      const granted = await system.call(`PATCH /admin/v1/operators/${id}`, { token: adminToken, body });
      expect(granted.body.data.projects).toEqual(body.operator.projects);
    };
    await grant("admin");
    await eventually(async () => expect((await change(session)).status).toBe(200));
    expect(await projects()).toMatchObject([{ id: project.id }]);
    expect((await current(session)).body.data.operator.projects).toEqual([{ id: project.id, role: "admin" }]);
    await grant("viewer");
    await eventually(async () => {
      const { problem } = await change(session);
      const refused =
        "authorization: this needs the role `admin`; the operator A member has `member`, and `viewer` in this project";
      expect(problem.errors).toEqual([refused]);
    });
    await grant();
    await eventually(async () => expect((await change(session)).status).toBe(404));
  });

  test("may be granted 100 existing projects, each once", async () => {
    const grantAll = async (projects: unknown) => {
      const body = { operator: { name: "Maria", role: "member", projects } };
      return (await system.call("POST /admin/v1/operators", { token: adminToken, body })).problem.errors;
    };
    const unknown = { id: "prj_00000000000000000000000000", role: "viewer" };
    const known = { id: project.id, role: "viewer" };
    expect(await grantAll([known, unknown])).toEqual(["operator.projects.1.id: project not found"]);
    const twice = "operator.projects.1.id: is in the list already; name each project once";
    expect(await grantAll([known, known])).toEqual([twice]);
    const many = await grantAll(Array.from({ length: 101 }, () => known));
    expect(many).toContain("operator.projects: must be at most 100 projects");
    expect((await grantAll([{ id: project.id, role: "member" }]))[0]).toContain(
      "operator.projects.0.role: must be one of",
    );
  });

  test("is signed out everywhere: sessions and codes end, the token and new sessions work", async () => {
    const { id, token, session } = await newOperator("admin");
    const code = await newCode(token);
    const out = await system.call(`POST /admin/v1/operators/${id}/sign-out`, { token: adminToken });
    expect(out.status).toBe(204);
    await eventually(async () => expect((await current(session)).status).toBe(401));
    const refused = await signIn({ body: { code } });
    expect([refused.status, refused.problem.errors]).toEqual([401, ["code: its operator was signed out since"]]);
    expect((await current({ authorization: `Bearer ${token}` })).status).toBe(200);
    const next = await system.session(token);
    expect((await current(next)).status).toBe(200);
    const { body } = await system.call(`GET /admin/v1/operators/${id}`, { token: adminToken });
    expect(Date.parse(body.data.signed_out_at)).toBeGreaterThan(Date.now() - 60_000);
  });

  test.each([
    ["is deleted", (id: string) => system.call(`DELETE /admin/v1/operators/${id}`, { token: adminToken })],
    ["gets another token", (id: string) => system.call(`POST /admin/v1/operators/${id}/token`, { token: adminToken })],
  ])("loses token and sessions when the operator %s", async (_, end) => {
    const { id, token, session } = await newOperator("admin");
    const code = await newCode(token);
    expect((await end(id)).status).toBeLessThan(300);
    await eventually(async () => {
      expect((await current(session)).status).toBe(401);
      expect((await system.call("GET /admin/v1/operators", { token })).status).toBe(401);
    });
    expect((await signIn({ body: { code } })).status).toBe(401);
  });
});

describe("a change by a session", () => {
  test("needs the CSRF token of that session", async () => {
    const session = await system.session(adminToken);
    const other = await system.session(adminToken);
    for (const csrf of [undefined, "", "nonsense", other["herald-csrf"]]) {
      const refused = await change({ cookie: session.cookie }, csrf === undefined ? {} : { "herald-csrf": csrf });
      expect([refused.status, refused.problem.type]).toEqual([403, "/docs/errors#csrf-token-invalid"]);
    }
    expect((await change(session)).status).toBe(200);
  });

  test.each([
    [{ "sec-fetch-site": "cross-site" }],
    [{ "sec-fetch-site": "same-site" }],
    [{ origin: "https://evil.example" }],
    [{ origin: "null" }],
  ])("and a read are refused with %j", async (headers) => {
    const session = await system.session(adminToken);
    for (const refused of [await change(session, headers), await current({ ...session, ...headers })])
      expect([refused.status, refused.problem.errors]).toEqual([
        403,
        ["cookie: pages of another origin may not use the session"],
      ]);
  });

  test("is accepted from a page of the gateway", async () => {
    const session = await system.session(adminToken);
    expect((await change(session, { "sec-fetch-site": "same-origin" })).status).toBe(200);
    expect((await change(session, { origin: system.address() })).status).toBe(200);
  });
});

describe("for a project", () => {
  test("a session reads and sends within its role", async () => {
    const headers = { "herald-project": project.id };
    const body = { notification: { title: "Hello", targets: ["all"] } };
    const [viewer, operator] = [await newOperator("viewer"), await newOperator("operator")];
    const read = (session: Session) => system.call("GET /api/v1/devices", { headers: { ...session, ...headers } });
    const send = (session: Session) =>
      system.call("POST /api/v1/notifications", { headers: { ...session, ...headers }, body });
    expect([(await read(viewer.session)).status, (await send(viewer.session)).status]).toEqual([200, 403]);
    expect([(await read(operator.session)).status, (await send(operator.session)).status]).toEqual([200, 202]);
  });

  test("a session must name an existing project by its id", async () => {
    const session = await system.session(adminToken);
    const read = (id: string) => system.call("GET /api/v1/devices", { headers: { ...session, "herald-project": id } });
    expect((await read("Shop")).problem.errors).toEqual(["Herald-Project: must be a project id, prj_…"]);
    expect((await read("prj_00000000000000000000000000")).status).toBe(404);
  });

  test("a session cookie without a project does not affect a client's request", async () => {
    const body = { project_id: project.id, identifier: "0".repeat(64), platform: "ios" };
    const { cookie } = await system.session(adminToken);
    const answer = await system.call("PUT /api/v1/identification", { headers: { cookie }, body });
    expect(answer.status).toBeLessThan(300);
  });
});

describe("a sign-in code", () => {
  test("signs in once, as the operator who created it", async () => {
    const { id, token } = await newOperator("admin");
    const code = await newCode(token);
    const { status, body } = await signIn({ body: { code } });
    expect([status, body.data.operator.id]).toEqual([201, id]);
    const again = await signIn({ body: { code } });
    expect([again.status, again.problem.errors[0]]).toEqual([401, expect.stringContaining("code: was used before")]);
  });

  test("signs in once when it is exchanged many times at the same moment", async () => {
    const code = await newCode();
    const answers = await Promise.all(Array.from({ length: 20 }, () => signIn({ body: { code } })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(19);
  });

  test("expires after 10 minutes", async () => {
    const code = await newCode();
    now = () => new Date(Date.now() + 600_000);
    const { status, problem } = await signIn({ body: { code } });
    expect([status, problem.errors[0]]).toEqual([401, expect.stringContaining("code: has expired")]);
  });

  test("is refused when it is unknown, malformed, missing, or beside a token", async () => {
    for (const code of [newSignInCode(), "hoc_nonsense", ""])
      expect((await signIn({ body: { code } })).status).toBe(401);
    expect((await signIn({})).problem.errors).toEqual(["code: is required without an Authorization header"]);
    const both = await signIn({ token: adminToken, body: { code: await newCode() } });
    expect(both.problem.errors).toEqual(["code: send it without an Authorization header"]);
  });

  test.each<Record<string, string>>([{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }])(
    "signs nobody in from a page of another origin, and is not used up: %j",
    async (headers) => {
      const code = await newCode();
      const refused = await signIn({ body: { code }, headers });
      expect([refused.status, refused.headers.get("set-cookie"), refused.problem.errors]).toEqual([
        403,
        null,
        ["origin: pages of another origin may not sign in"],
      ]);
      expect((await signIn({ body: { code }, headers: { "sec-fetch-site": "same-origin" } })).status).toBe(201);
    },
  );

  test("works for a browser whose earlier session has ended", async () => {
    const headers = { cookie: `herald_session=${newSessionSecret()}` };
    expect((await signIn({ headers, body: { code: await newCode() } })).status).toBe(201);
  });

  test("of a session signs in no longer than that session", async () => {
    const { session } = await newOperator("member");
    now = () => new Date(Date.now() + 7 * 3_600_000);
    const made = await system.call("POST /admin/v1/sessions/codes", { headers: session });
    const { expires_at: end } = (await current(session)).body.data;
    for (const body of [{ code: made.body.data.code }]) {
      const { status, body: answer } = await signIn({ body });
      expect([status, answer.data.expires_at]).toEqual([201, end]);
    }
  });

  test("is exchanged by a program for a bearer, which needs no CSRF token and is no cookie", async () => {
    const { token } = await newOperator("admin");
    const { headers, body } = await signIn({ body: { code: await newCode(token), bearer: true } });
    expect([headers.get("set-cookie"), body.data.csrf_token]).toEqual([null, undefined]);
    expect(body.token).toMatch(/^hss_/);
    const authorization = `Bearer ${body.token}`;
    expect((await current({ authorization })).body.data).toMatchObject({ expires_at: body.data.expires_at });
    expect((await change({}, { authorization })).status).toBe(200);
    const devices = { headers: { authorization, "herald-project": project.id } };
    expect((await system.call("GET /api/v1/devices", devices)).status).toBe(200);
    expect((await current({ cookie: `herald_session=${body.token}` })).status).toBe(401);
    const { cookie } = await system.session(token);
    expect((await current({ authorization: `Bearer ${cookie.split("=")[1]}` })).status).toBe(401);
    const longer = await signIn({ token: body.token });
    expect(Date.parse(longer.body.data.expires_at)).toBeLessThanOrEqual(Date.parse(body.data.expires_at));
    expect((await system.call("DELETE /admin/v1/sessions/current", { token: body.token })).status).toBe(204);
    await eventually(async () => expect((await current({ authorization })).status).toBe(401));
  });
});

test("an operator signs in at most 60 times a minute", async () => {
  const { token } = await newOperator("viewer");
  const statuses = await Promise.all(Array.from({ length: 65 }, async () => (await signIn({ token })).status));
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
  expect((await signIn({ token: (await newOperator("viewer")).token })).status).toBe(201);
});
