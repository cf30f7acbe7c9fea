import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { eventually, startIdentityProvider, type TestIdentityProvider } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

/** Sign-in by a real OpenID provider. Bad answers of a provider are attacks, in e2e/hostile. */

let provider: TestIdentityProvider;
let system: GatewayTest;
let folder: string;
let project: TestProject;
/** A time so that a passing clock of a session can be tried. */
let now = () => new Date();
const groupsFile = () => join(folder, "groups.yaml");

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-sign-in-"));
  await writeFile(groupsFile(), "staff: { role: viewer }\n");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  provider = await startIdentityProvider();
  provider.redirectTo(url);
  system = await startGatewayTest({
    now: () => now(),
    environment: {
      HERALD_PORT: String(port),
      HERALD_GATEWAY_OIDC_ISSUER: provider.issuer,
      HERALD_GATEWAY_OIDC_CLIENT_ID: provider.clientId,
      HERALD_GATEWAY_OIDC_CLIENT_SECRET: provider.clientSecret,
      HERALD_GATEWAY_OIDC_URL: url,
      HERALD_GATEWAY_OIDC_GROUPS_FILE: groupsFile(),
      HERALD_GATEWAY_OIDC_SESSION: "1h",
    },
  });
  project = await system.project("Shop");
});
afterAll(async () => {
  await system?.stop();
  await provider?.stop();
  await rm(folder, { recursive: true, force: true });
});

const begin = (query = "") => `${system.address()}/admin/v1/sign-in/oidc${query}`;
const finish = async (
  { callback, cookie }: { callback: string; cookie: string },
  headers: Record<string, string> = {},
) => {
  const response = await fetch(callback, { redirect: "manual", headers: { cookie, ...headers } });
  const session = response.headers.getSetCookie().find((one) => one.startsWith("herald_session="));
  const body = response.status < 400 ? {} : ((await response.json()) as { readonly type?: string });
  return {
    status: response.status,
    location: response.headers.get("location"),
    body,
    session: session?.split(";")[0] ?? "",
  };
};
const signIn = async (person: string, query = "") => finish(await provider.signIn(begin(query), person));
const current = (cookie: string) => system.call("GET /admin/v1/sessions/current", { headers: { cookie } });
const operatorOf = async (cookie: string) => (await current(cookie)).body.data.operator;

test("the console learns that people can sign in by the provider", async () => {
  expect((await system.call("GET /admin/v1/sign-in")).body).toEqual({ data: { oidc: true } });
});

describe("a person of a group", () => {
  test("signs in with the group's role, as the operator of issuer and subject, for as long as is set", async () => {
    provider.people.set("maria", { name: "Maria Lopez", email: "maria@example.com", groups: ["staff", "other"] });
    const { status, location, session } = await signIn("maria", "?return_to=/console/p/x/operations");
    expect([status, location]).toEqual([303, "/console/p/x/operations"]);
    const { body } = await current(session);
    expect(body.data.operator).toMatchObject({ name: "Maria Lopez", role: "viewer", projects: [] });
    const leftMs = Date.parse(body.data.expires_at) - Date.now();
    expect(leftMs).toBeLessThanOrEqual(3_600_000);
    expect(leftMs).toBeGreaterThan(3_500_000);
    const { id } = body.data.operator;
    const stored = await system.call(`GET /admin/v1/operators/${id}`, { token: adminToken });
    const effective = { role: "viewer", projects: [], groups: ["staff"] };
    const own = { role: "member", email: "maria@example.com", groups: ["staff"], effective };
    expect(stored.body.data).toMatchObject(own);
    const list = await system.call("GET /admin/v1/operators", { token: adminToken });
    expect(list.body.data).toContainEqual(expect.objectContaining({ id, effective }));

    provider.people.set("maria", { name: "Maria Diaz", email: "new@example.com", groups: ["staff"] });
    expect(await operatorOf((await signIn("maria")).session)).toMatchObject({ id, name: "Maria Diaz" });
    provider.people.set("impostor", { name: "Impostor", email: "new@example.com", groups: ["staff"] });
    expect((await operatorOf((await signIn("impostor")).session)).id).not.toBe(id);
  });

  test("has the union with the own grants, and loses the group's role when the file changes", async () => {
    provider.people.set("jo", { name: "Jo", groups: ["staff"] });
    const { session } = await signIn("jo");
    const { id } = await operatorOf(session);
    const body = { operator: { projects: [{ id: project.id, role: "admin" }] } };
    await system.call(`PATCH /admin/v1/operators/${id}`, { token: adminToken, body });
    const change = async () => {
      const renamed = { project: { name: "Renamed" } };
      const headers = await withCsrf(session);
      return system.call(`PATCH /admin/v1/projects/${project.id}`, { headers, body: renamed });
    };
    const list = () => system.call("GET /admin/v1/operators", { headers: { cookie: session } });
    await eventually(async () => expect((await change()).status).toBe(200));
    expect((await list()).status).toBe(200);
    await writeFile(groupsFile(), "staff: { projects: [] }\n");
    await eventually(async () => expect((await list()).status).toBe(403));
    expect((await change()).status).toBe(200);
    await writeFile(groupsFile(), "staff: { role: viewer }\n");
    await eventually(async () => expect((await list()).status).toBe(200));
  });

  test("who is deleted loses the session, and is a new operator at the next sign-in", async () => {
    provider.people.set("li", { name: "Li", groups: ["staff"] });
    const { session } = await signIn("li");
    const { id } = await operatorOf(session);
    await system.call(`DELETE /admin/v1/operators/${id}`, { token: adminToken });
    await eventually(async () => expect((await current(session)).status).toBe(401));
    expect((await operatorOf((await signIn("li")).session)).id).not.toBe(id);
  });
});

const withCsrf = async (cookie: string) => ({
  cookie,
  "herald-csrf": (await current(cookie)).body.data.csrf_token as string,
});

test("a person of no group is refused: an API client gets the status, a browser the console with the reason", async () => {
  provider.people.set("stranger", { name: "A Stranger", groups: ["elsewhere"] });
  const refused = await signIn("stranger");
  expect([refused.status, refused.body.type, refused.session]).toEqual([403, "/docs/errors#sign-in-not-permitted", ""]);
  const shown = await finish(await provider.signIn(begin(), "stranger"), { accept: "text/html,*/*" });
  expect([shown.status, shown.location, shown.session]).toEqual([303, "/console/#sign-in=sign-in-not-permitted", ""]);
});

test("a browser whose person was refused can choose another account at the next sign-in, and at that one alone", async () => {
  provider.people.set("second", { name: "A Second", groups: ["elsewhere"] });
  const promptOf = async (cookie: string) => {
    const begun = await fetch(begin(), { redirect: "manual", headers: { cookie } });
    const [next = ""] = begun.headers.get("set-cookie")?.split(";") ?? [];
    return { prompt: new URL(begun.headers.get("location") ?? "").searchParams.get("prompt"), next };
  };
  const { callback, cookie } = await provider.signIn(begin(), "second");
  expect((await promptOf(cookie)).prompt).toBeNull();
  const refused = await fetch(callback, { redirect: "manual", headers: { cookie, accept: "text/html" } });
  const [kept = ""] = refused.headers.get("set-cookie")?.split(";") ?? [];
  const { prompt, next } = await promptOf(kept);
  expect(prompt).toMatch(/^(?:select_account|login)$/);
  expect((await promptOf(next)).prompt).toBeNull();
  // It is no sign-in that has begun.
  expect((await finish({ callback, cookie: kept })).body.type).toBe("/docs/errors#sign-in-expired");
});

test("signing out answers where the provider's session ends", async () => {
  provider.people.set("kim", { name: "Kim", preferred_username: "kim@corp", groups: ["staff"] });
  const { session } = await signIn("kim");
  const out = await system.call("DELETE /admin/v1/sessions/current", { headers: await withCsrf(session) });
  expect(out.status).toBe(200);
  const logout = new URL(out.body.data.logout_url);
  expect(logout.origin).toBe(provider.issuer);
  expect(logout.searchParams.get("post_logout_redirect_uri")).toBe(`${system.address()}/console/`);
  expect(logout.searchParams.has("id_token_hint")).toBe(false);
  expect(logout.searchParams.get("client_id")).toBe(provider.clientId);
  expect(logout.searchParams.get("logout_hint")).toBe("kim@corp");
  expect((await fetch(logout)).status).toBe(200);
});

test("keys that the provider has rotated work at once", async () => {
  provider.people.set("rotated", { name: "Rotated", groups: ["staff"] });
  expect((await signIn("rotated")).status).toBe(303);
  provider.rotateKeys();
  expect((await signIn("rotated")).status).toBe(303);
});

test("a code works once, in the browser that began, and for 10 minutes", async () => {
  provider.people.set("once", { name: "Once", groups: ["staff"] });
  const came = await provider.signIn(begin(), "once");
  const other = await provider.signIn(begin(), "once");
  const foreign = await finish({ callback: came.callback, cookie: other.cookie });
  expect([foreign.status, foreign.session]).toEqual([400, ""]);
  expect((await finish({ callback: came.callback, cookie: "" })).status).toBe(400);
  expect((await finish(came)).status).toBe(303);
  const replayed = await finish(came);
  expect([replayed.status, replayed.body.type, replayed.session]).toEqual([400, "/docs/errors#sign-in-expired", ""]);
});

test("only pages of the console can be returned to", async () => {
  for (const path of [
    "//evil.example",
    "https://evil.example",
    "/console//evil",
    "/console/../docs",
    "/consolex",
    "/console/\\x",
  ]) {
    const refused = await fetch(begin(`?return_to=${encodeURIComponent(path)}`), { redirect: "manual" });
    expect([path, refused.status]).toEqual([path, 422]);
  }
});

test("sessions go on while the provider is unavailable, and a sign-in says so", async () => {
  provider.people.set("early", { name: "Early", groups: ["staff"] });
  const { session } = await signIn("early");
  const came = await provider.signIn(begin(), "early");
  await provider.stop();
  expect((await current(session)).status).toBe(200);
  const refused = await finish(came);
  expect([refused.status, refused.body.type]).toEqual([503, "/docs/errors#identity-provider-unavailable"]);
  now = () => new Date(Date.now() + 3_500_000);
  const shown = await fetch(begin(), { redirect: "manual", headers: { accept: "text/html" } });
  expect(shown.headers.get("location")).toBe("/console/#sign-in=identity-provider-unavailable");
  expect((await system.call("GET /readyz")).status).toBe(200);
});
