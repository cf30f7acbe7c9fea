import { newOperatorToken, type OperatorRole } from "@herald/contracts";
import { parseMasterKeys } from "@herald/kit";
import { eventually, expectStatus, type HttpAnswer, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AuditDocument, firstHash, nextRow } from "../../services/registry/src/domain/audit-chain.ts";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { latencyDuring } from "./latency.ts";
import { scale } from "./scale.ts";
import { startTwoPorts, type TwoPorts } from "./second-port.ts";
import { stranger } from "./stranger.ts";

/** What a viewer, or a stranger at the admin port, can do to operators and to the audit log, with the limits of production. */
const limits = { HERALD_GATEWAY_LIMIT_PROJECT: "10000", HERALD_GATEWAY_LIMIT_FAILURES: "100" };
/** As where an ingress controller is in front of the public port. */
const proxies = { HERALD_GATEWAY_TRUST_PROXY: "1" };
/** One check reads at most this many rows. */
const checkedRows = 10_000;

let system: System;
let project: Project;
let ports: TwoPorts;
beforeAll(async () => {
  system = await startSystem({ env: { ...limits, ...proxies } });
  await seedAuditRows(checkedRows);
  project = await system.project("Quiet");
  ports = await startTwoPorts(system);
});
afterAll(async () => {
  await ports?.stop();
  await system?.stop();
});
logOnFailure(() => system);

const registryRows = <Row extends { _id: number | string }>(collection: string) =>
  system.registryDatabase.client.db(system.registryDatabase.name).collection<Row>(collection);

/** Adds valid rows at the end of the chain, much faster than operators make them. */
const seedAuditRows = async (count: number): Promise<void> => {
  const parsed = parseMasterKeys(system.environmentOf("registry").HERALD_REGISTRY_MASTER_KEYS ?? "");
  if ("problem" in parsed) throw new Error(parsed.problem);
  const stored = registryRows<AuditDocument>("auditRows");
  let last = (await stored.find().sort({ _id: -1 }).limit(1).toArray())[0] ?? { _id: 0, hash: firstHash };
  const rows = Array.from({ length: count }, (_, n) => {
    const operator = { id: "root", name: "root", role: "admin" } as const;
    const facts = { operator, action: "changeProject", target: "/admin/v1/projects", address: "127.0.0.1" };
    const row = nextRow(parsed.keys, last, { ...facts, eventId: `seeded-${n}`, at: new Date() });
    last = row;
    return row;
  });
  await stored.insertMany(rows);
  await registryRows<{ _id: string; sequence: number }>("auditHeads").updateOne(
    { _id: "head" },
    { $max: { sequence: last._id } },
    { upsert: true },
  );
};

const newOperator = (role: OperatorRole) => system.operator({ name: `Flooding ${role}`, role });

const count = (answers: readonly { readonly status: number }[], status: number): number =>
  answers.filter((answer) => answer.status === status).length;

const auditOf = async (query: string): Promise<Record<string, unknown>[]> =>
  expectStatus(await system.admin(`GET /audit?per_page=100&${query}`), 200).body.data;

/** An admin's change: how long until the audit log shows it, in ms, and how many rows were appended between its answer and its own row. */
const timeToAppear = async (name: string): Promise<{ readonly ms: number; readonly ahead: number }> => {
  const renamed = { project: { name } };
  expectStatus(await system.admin(`PATCH /projects/${project.id}`, { body: renamed }), 200);
  const at = performance.now();
  const [last] = await registryRows<AuditDocument>("auditRows").find().sort({ _id: -1 }).limit(1).toArray();
  const row = await eventually(
    async () => {
      const [found] = await auditOf(`action=changeProject&project_id=${project.id}`);
      expect(found?.after).toEqual(renamed);
      return found;
    },
    { timeoutMs: 120_000 },
  );
  return { ms: Math.round(performance.now() - at), ahead: Math.max(0, Number(row?.sequence) - (last?._id ?? 0) - 1) };
};

test("repeated sign-outs delay no other operator's audit row", async ({ task }) => {
  const { id, token } = await newOperator("viewer");
  const floodMs = scale(30_000, 4_000);
  const answers: HttpAnswer[] = [];
  const begun = performance.now();
  const flood = Promise.all(
    Array.from({ length: 16 }, async () => {
      while (performance.now() - begun < floodMs)
        answers.push(await request(system.gateway, "DELETE /admin/v1/sessions/current", { token }));
    }),
  );
  await eventually(() => expect(performance.now() - begun).toBeGreaterThan(floodMs / 2), { timeoutMs: floodMs });
  const during = await timeToAppear("Renamed during the flood");
  await flood;
  const after = await timeToAppear("Renamed after the flood");
  const rows = await registryRows<AuditDocument>("auditRows").countDocuments({ "operator.id": id as "root" });
  show(task, {
    requests: answers.length,
    refused: count(answers, 429),
    "its rows": rows,
    "until an admin's row is listed, during the flood, ms": during.ms,
    "rows before it": during.ahead,
    "after it, ms": after.ms,
    "rows before that": after.ahead,
  });
  // Behind the flood it would come after all of it. It is promised within a second; a busy machine may take two, of a flood that is slower too.
  expect(Math.max(during.ahead, after.ahead)).toBeLessThan((answers.length * 2_000) / floodMs);
  // At most one window more than the flood lasted.
  expect(rows).toBeLessThanOrEqual(5_000 * (Math.ceil(floodMs / 10_000) + 1));
});

test("sign-ins and sign-in codes beyond the limit have no audit row", async ({ task }) => {
  const { id, token } = await newOperator("admin");
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, n) =>
      request(system.gateway, n % 2 ? "POST /admin/v1/sessions" : "POST /admin/v1/sessions/codes", { token }),
    ),
  );
  await timeToAppear("Renamed after the sign-ins");
  const rows = await registryRows<AuditDocument>("auditRows").countDocuments({ "operator.id": id as "root" });
  show(task, { "sign-ins": answers.length, refused: count(answers, 429), rows });
  expect(count(answers, 201)).toBe(60);
  expect(rows).toBe(60);
});

test("ten audit checks at once hold up no reads", async ({ task }) => {
  const { token } = await newOperator("viewer");
  const rounds = scale(10, 1);
  const answers: HttpAnswer[] = [];
  const check = () => request(system.gateway, "GET /admin/v1/audit/verify", { token });
  const busy = await latencyDuring(
    () => project.call("GET /devices?per_page=1"),
    async () => {
      for (let round = 0; round < rounds; round++)
        answers.push(...(await Promise.all(Array.from({ length: 10 }, check))));
    },
    system.services.dispatch,
  );
  show(task, {
    checks: answers.length,
    refused: count(answers, 429),
    "another's reads meanwhile, p99 ms": busy.p99,
    "of them answered": busy.answered,
  });
  for (const { status } of answers) expect([200, 429]).toContain(status);
  expect(count(answers, 200)).toBeGreaterThan(0);
  // As `herald audit verify` does: every row, piece by piece, beside another viewer who checks too.
  let next: string | null = "0";
  let checked = 0;
  while (next !== null) {
    const one: HttpAnswer = expectStatus(await system.admin(`GET /audit/verify?after=${next}`), 200);
    expect(one.body.data.valid).toBe(true);
    checked += one.body.data.checked;
    next = one.body.data.next;
  }
  expect(checked).toBeGreaterThan(checkedRows);
  // Registry answers reads between the pieces of each check; how long both take depends on the machine.
  expect(busy.answered).toBeGreaterThan(2 * count(answers, 200));
});

test("audit rows contain nothing of a device or user", async ({ task }) => {
  const { token, id } = await newOperator("operator");
  const planted = "Ann-Example";
  const ownWords = { name: planted, id: `${planted}-1`, subject: planted, status: planted, role: [planted] };
  const headers = { "herald-project": project.id };
  const call = (route: string, body: unknown) => request(system.gateway, route, { token, headers, body });
  const { device } = await project.register();
  const metadata = { ...ownWords, [planted]: true, deep: ownWords };
  const answers = [
    await call("POST /api/v1/devices", {
      device: { platform: "ios", token: "ab".repeat(32), metadata, identifiers: ownWords, user_id: planted },
    }),
    await call(`PATCH /api/v1/devices/${device.id}`, { device: { metadata, user_id: planted } }),
    await call("PUT /api/v1/devices", { devices: [{ platform: "ios", token: "cd".repeat(32), metadata }] }),
    await call(`DELETE /api/v1/users/${planted}`, undefined),
  ];
  await eventually(async () => expect((await auditOf(`operator=${id}`)).length).toBeGreaterThanOrEqual(4));
  await timeToAppear("Renamed after the devices");
  const rows = await auditOf(`operator=${id}`);
  const found = rows.filter((row) => JSON.stringify(row).includes(planted));
  show(task, { changes: answers.length, rows: rows.length, "with personal data": found.length });
  expect(count(answers.slice(0, 2), 201) + count(answers.slice(0, 2), 200)).toBe(2);
  expect(found).toEqual([]);
  expect(rows.map(({ after }) => after)).toContainEqual({ fields: ["device.metadata", "device.user_id"] });
});

test("forged addresses and request ids buy no guesses and are in no audit row", async ({ task }) => {
  const guesser = stranger(ports.operators, "127.0.0.77");
  const statuses: Record<number, number> = {};
  const begun = performance.now();
  await inParallel(
    Array.from({ length: 400 }, (_, n) => n),
    8,
    async (n) => {
      const { status } = await guesser.ask("GET", "/admin/v1/projects", {
        headers: { authorization: `Bearer ${newOperatorToken()}`, "x-forwarded-for": `198.51.100.${n % 250}` },
      });
      statuses[status] = (statuses[status] ?? 0) + 1;
    },
  );
  guesser.close();
  const windows = Math.floor((performance.now() - begun) / 10_000) + 1;
  const { id, token } = await newOperator("admin");
  const forged = { "x-forwarded-for": "198.51.100.9", "x-request-id": "forged-request-id" };
  const signedIn = await request(ports.operators, "POST /admin/v1/sessions", { token, headers: forged });
  await eventually(async () => expect(await auditOf(`operator=${id}`)).toHaveLength(1));
  const [row] = await auditOf(`operator=${id}`);
  show(task, {
    guesses: 400,
    "401": statuses[401] ?? 0,
    "429": statuses[429] ?? 0,
    "row's address": String(row?.address),
  });
  expectStatus(signedIn, 201);
  expect(row).toMatchObject({ address: "127.0.0.1", request_id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  expect(statuses[401] ?? 0).toBeLessThanOrEqual(100 * windows);
  expect(statuses[429] ?? 0).toBeGreaterThan(0);
});

const cookieOf = ({ headers }: HttpAnswer): string => headers.get("set-cookie")?.split(";")[0] ?? "";
const current = (cookie: string, headers: Record<string, string> = {}) =>
  request(system.gateway, "GET /admin/v1/sessions/current", { headers: { ...headers, cookie } });

test("an operator has 20 sessions at most", async ({ task }) => {
  const { token } = await newOperator("viewer");
  const cookies: string[] = [];
  for (let n = 0; n < 60; n++) {
    const signedIn = await request(system.gateway, "POST /admin/v1/sessions", { token });
    cookies.push(cookieOf(expectStatus(signedIn, 201)));
  }
  const live = async () => count(await Promise.all(cookies.map((cookie) => current(cookie))), 200);
  // The limit of refusals counts the ended ones, so they are asked once.
  const left = await live();
  show(task, { "sign-ins": cookies.length, live: left });
  expect((await current(cookies.at(-1) ?? "")).status).toBe(200);
  expect(left).toBeLessThanOrEqual(20);
});

test("over https an unprefixed cookie is no session", async ({ task }) => {
  const { token } = await newOperator("viewer");
  const https = { "x-forwarded-proto": "https" };
  const own = cookieOf(
    expectStatus(await request(system.gateway, "POST /admin/v1/sessions", { token, headers: https }), 201),
  );
  const planted = cookieOf(expectStatus(await request(system.gateway, "POST /admin/v1/sessions", { token }), 201));
  show(task, { "cookie over https": own.split("=")[0] ?? "" });
  expect((await current(planted, https)).status).toBe(401);
  expect(own).toMatch(/^__Host-herald_session=/);
  expect((await current(`${planted}; ${own}`, https)).body.data.operator.role).toBe("viewer");
});
