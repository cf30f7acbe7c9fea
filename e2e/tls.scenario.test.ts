import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCaddy } from "./harness/caddy.ts";
import { seed } from "./harness/seed.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";

/** The gateway behind a real Caddy with infra/Caddyfile: `infra/init --tls` with compose, and one container. */

let system: System;
let folder: string;
let caddy: Awaited<ReturnType<typeof startCaddy>>;
let https: string;
let operators: string;
let http: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-tls-"));
  // As infra/init --tls writes them.
  system = await startSystem({ env: { HERALD_GATEWAY_TRUST_PROXY: "1" } });
  const ports = { https: await freePort(), http: await freePort(), admin: await freePort() };
  const to = new URL(system.gateway).host;
  const variables = { HERALD_TLS_NAME: "localhost", HERALD_TLS_TO: to, HERALD_TLS_ADMIN_TO: to };
  caddy = await startCaddy({ folder, ports, variables });
  https = `https://localhost:${ports.https}`;
  operators = `https://localhost:${ports.admin}`;
  http = `http://localhost:${ports.http}`;
});
afterAll(async () => {
  await caddy?.stop();
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});
logOnFailure(() => system);

const json = { "content-type": "application/json" };
async function* text(...parts: string[]) {
  for (const part of parts) yield Buffer.from(part);
}

test("an operator's session is a cookie that only TLS carries, and http leads to https", async () => {
  const headers = { ...json, authorization: `Bearer ${system.adminToken}` };
  const signedIn = await caddy.ask(`${operators}/admin/v1/sessions`, { method: "POST", headers, body: text("{}") });
  expect(signedIn.statusCode).toBe(201);
  const [cookie = ""] = signedIn.headers["set-cookie"] ?? [];
  expect(cookie).toMatch(/^__Host-herald_session=.*; Secure/);
  const own = await caddy.ask(`${operators}/admin/v1/operators`, { headers: { cookie: cookie.split(";")[0] } });
  expect(own.statusCode).toBe(200);
  const plain = await fetch(`${http}/docs`, { redirect: "manual" });
  expect(plain.status).toBe(308);
  expect(plain.headers.get("location")).toBe("https://localhost/docs");
});

test("the gateway learns the client's address from Caddy, whatever the client claims", async () => {
  const headers = { ...json, authorization: `Bearer ${system.adminToken}`, "x-forwarded-for": "203.0.113.7" };
  const made = await caddy.ask(`${https}/admin/v1/projects`, {
    ...{ method: "POST", headers, localAddress: "127.0.0.9", family: 4 },
    body: text(JSON.stringify({ project: { name: "From elsewhere" } })),
  });
  expect(made.statusCode).toBe(201);
  await eventually(async () => {
    const { body } = expectStatus(await system.admin("GET /audit?action=createProject&limit=5"), 200);
    const rows = body.data.filter(({ address }: { address: string }) => address === "127.0.0.9");
    expect(rows).toHaveLength(1);
  });
});

test("events arrive while the stream is open", async () => {
  const project = await system.project("Streamed");
  const [device] = await seed(system, project, 1);
  const stream = await caddy.ask(`${https}/api/v1/events`, { headers: { authorization: `Bearer ${project.token}` } });
  expect(stream.headers["content-type"]).toMatch(/^text\/event-stream/);
  const { id } = await project.send({ title: "Now", targets: [`device:${device?.id}`] });
  let seen = "";
  for await (const part of stream) {
    seen += part;
    if (seen.includes(id) && seen.includes("notification.completed")) break;
  }
  expect(seen).toContain(id);
});

test("a file of recipients passes as it is sent, however large it is", async () => {
  const project = await system.project("Uploaded");
  const content = { title: "No. {{ n }}.", variables: { n: "" }, recipients: { upload: "device" } };
  const { id } = await project.send(content as unknown as Parameters<typeof project.send>[0]);
  const bearer = `Bearer ${project.token}`;
  const url = `${https}/api/v1/notifications/${id}/recipients`;
  const stored = async () => {
    const answer = await caddy.ask(url, { headers: { authorization: bearer } });
    return JSON.parse(Buffer.concat(await answer.toArray()).toString()).data.lines_stored as number;
  };
  const line = (at: number) => `dev_unknown${at},${"x".repeat(200)}\n`;
  const lines = 100_000; // 20 MB, more than any buffer on the way
  let early = 0;
  async function* file() {
    yield* text("target,n\n");
    for (let at = 0; at < lines; at += 1_000) {
      yield* text(Array.from({ length: 1_000 }, (_, index) => line(at + index)).join(""));
      // The last part waits until the gateway has stored of what came before.
      if (at === lines - 2_000)
        await eventually(async () => {
          early = await stored();
          expect(early).toBeGreaterThan(0);
        });
    }
  }
  const headers = { authorization: bearer, "content-type": "text/csv" };
  const answer = await caddy.ask(url, { method: "PUT", headers, body: file() });
  expect([answer.statusCode, Buffer.concat(await answer.toArray()).toString()]).toEqual([200, expect.anything()]);
  expect(early).toBeLessThan(lines);
  expect(await stored()).toBe(lines + 1);
});
