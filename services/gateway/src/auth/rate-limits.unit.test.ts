import { newDeviceId, newProjectId, newTokenId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { describe, expect, test } from "vitest";
import type { GatewayConfig } from "../config.ts";
import { fixedLimits } from "../fixed-limits.ts";
import { createLimitsOfProject } from "../limits-of-project.ts";
import type { Caller } from "./caller.ts";
import { createRateLimits } from "./rate-limits.ts";

const now = new Date();
type Own = { project: number; sends: number; dryRuns: number };
/** Limits as `createLimitsOfProject` makes them of these, divided by the live gateways. */
const limitsFor = (own: Own, gateways = () => 1) =>
  createLimitsOfProject({
    config: { HERALD_GATEWAY_LIMIT_PROJECT: own.project, HERALD_GATEWAY_QUOTA_SENDS: own.sends } as GatewayConfig,
    fixed: { ...fixedLimits, dryRuns: own.dryRuns },
    own: () => ({ project: own.project, sends: own.sends, "dry-runs": own.dryRuns }),
    gateways,
  });
const limits = () =>
  createRateLimits(
    {
      HERALD_GATEWAY_LIMIT_FAILURES: 3,
      HERALD_GATEWAY_LIMIT_CLIENTS: 3,
      HERALD_GATEWAY_LIMIT_PROJECT: 5,
      HERALD_GATEWAY_QUOTA_SENDS: 4,
      HERALD_GATEWAY_LIMIT_NEW_DEVICES: 1_000,
    } as GatewayConfig,
    limitsFor({ project: 5, sends: 4, dryRuns: 2 }),
  );
const caller = (projectId = newProjectId(now)): Caller => ({
  kind: "project",
  projectId,
  tokenId: newTokenId(now),
  scopes: [],
});
const times = async (count: number, work: () => Promise<unknown>): Promise<void> => {
  for (let index = 0; index < count; index++) await work();
};

test("the headers contain what is left and when the window ends", async () => {
  const { countRequest } = limits();
  const one = caller();
  expect(await countRequest(one)).toEqual({
    "ratelimit-policy": '"token";q=3;w=10, "project";q=5;w=10',
    ratelimit: '"token";r=2;t=10, "project";r=4;t=10',
  });
  expect((await countRequest(one)).ratelimit).toMatch(/^"token";r=1;t=\d+, "project";r=3;t=\d+$/);
  const device = { kind: "device", projectId: newProjectId(now), deviceId: newDeviceId(now) } as const;
  expect((await countRequest(device)).ratelimit).toBe('"device";r=0;t=10');
  expect(await countRequest({ kind: "client" })).toEqual({});
});

test("an operator has one limit for all projects and for what belongs to none", async () => {
  const { countRequest } = limits();
  const operator = { id: "root", name: "root", role: "admin", projects: [], tokenHash: "" } as const;
  expect(await countRequest({ kind: "operator", operator })).toEqual({
    "ratelimit-policy": '"token";q=3;w=10',
    ratelimit: '"token";r=2;t=10',
  });
  await countRequest({ ...caller(), tokenId: "root", operator } as Caller);
  await countRequest({ ...caller(), tokenId: "root", operator } as Caller);
  await expect(countRequest({ kind: "operator", operator })).rejects.toMatchObject({ code: "rate-limited" });
});

test("a token beyond its limit leaves room for the others of its project, and does not affect other projects", async () => {
  const { countRequest } = limits();
  const [runaway, other, stranger] = [caller(), caller(), caller()];
  const sibling = { ...runaway, tokenId: newTokenId(now) } as Caller;
  await times(3, () => countRequest(runaway));
  for (let again = 0; again < 5; again++)
    await expect(countRequest(runaway)).rejects.toMatchObject({
      code: "rate-limited",
      retryAfterSeconds: 10,
      headers: { "ratelimit-policy": '"token";q=3;w=10', ratelimit: '"token";r=0;t=10' },
    });
  await times(2, () => countRequest(sibling));
  await expect(countRequest(sibling)).rejects.toMatchObject({ headers: { "ratelimit-policy": '"project";q=5;w=10' } });
  await countRequest(other);
  await countRequest(stranger);
});

test("a project has a limit of notifications in an hour, and the refusal says when it ends", async () => {
  const { reserveSends } = limits();
  const [one, other] = [newProjectId(now), newProjectId(now)];
  expect(await reserveSends(one, 3)).toMatchObject({ granted: 3 });
  const some = await reserveSends(one, 5);
  expect(some).toMatchObject({
    granted: 1,
    refusal: {
      code: "quota-exceeded",
      message: "notifications: at most 4 in 3600 s are accepted here; retry in 3600 s",
      retryAfterSeconds: 3_600,
      headers: { "ratelimit-policy": '"sends";q=4;w=3600', ratelimit: '"sends";r=0;t=3600' },
    },
  });
  expect(await reserveSends(one, 1)).toMatchObject({ granted: 0 });
  await some.refund(1);
  expect(await reserveSends(one, 2)).toMatchObject({ granted: 1 });
  expect(await reserveSends(other, 1)).toMatchObject({ granted: 1 });
});

test("each notification of a batch counts as a request, and a refused batch counts nothing", async () => {
  const { countRequest, countBatch } = limits();
  const one = caller();
  await countRequest(one);
  await expect(countBatch(one, 3)).rejects.toMatchObject({
    code: "rate-limited",
    message: "requests: each notification of a batch counts as one: at most 3 in 10 s are accepted here; retry in 10 s",
    headers: { ratelimit: '"token";r=0;t=10' },
  });
  expect((await countBatch(one, 2)).ratelimit).toBe('"token";r=0;t=10, "project";r=2;t=10');
  await expect(countRequest(one)).rejects.toMatchObject({ code: "rate-limited" });
  const sibling = { ...one, tokenId: newTokenId(now) } as Caller;
  await expect(countBatch(sibling, 3)).rejects.toMatchObject({
    headers: { "ratelimit-policy": '"project";q=5;w=10' },
  });
  expect((await countBatch(sibling, 2)).ratelimit).toBe('"token";r=1;t=10, "project";r=0;t=10');
  expect(
    await countBatch(
      { kind: "operator", operator: { id: "root", name: "root", role: "admin", projects: [], tokenHash: "" } },
      5,
    ),
  ).toEqual({});
});

test("a project has a limit of dry runs in a minute, whatever it sends", async () => {
  const { reserveSends, countDryRun } = limits();
  const project = newProjectId(now);
  await times(2, () => countDryRun(project));
  await expect(countDryRun(project)).rejects.toMatchObject({
    code: "quota-exceeded",
    message: "dry runs: at most 2 in 60 s are accepted here; retry in 60 s",
    retryAfterSeconds: 60,
    headers: { "ratelimit-policy": '"dry-runs";q=2;w=60', ratelimit: '"dry-runs";r=0;t=60' },
  });
  expect(await reserveSends(project, 1)).toMatchObject({ granted: 1 });
  await countDryRun(newProjectId(now));
});

const address = "203.0.113.7";

test("an address with too many failures is refused without a lookup", async () => {
  const { countFailure, countWhileVerifying } = limits();
  await times(3, () => countFailure(address));
  let looked = 0;
  const look = async () => ++looked;
  await expect(countWhileVerifying(address, look)).rejects.toMatchObject({ code: "rate-limited" });
  expect(looked).toBe(0);
  expect(await countWhileVerifying("203.0.113.8", look)).toBe(1);
});

test("an address has at most as many concurrent lookups as failures left, and successful ones cost nothing", async () => {
  const { countWhileVerifying } = limits();
  await times(10, () => countWhileVerifying(address, async () => true));
  let asked = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const all = Array.from({ length: 10 }, () =>
    countWhileVerifying(address, () => {
      asked++;
      return promise;
    }).then(
      () => "found",
      () => "refused",
    ),
  );
  await times(10, async () => {});
  expect(asked).toBe(3);
  resolve();
  expect((await Promise.all(all)).filter((one) => one === "found")).toHaveLength(3);
});

describe("a signed request", () => {
  const refusal = new HeraldError("open-token-invalid", "token: is not an open token");
  const refuse = () => Promise.reject(refusal);

  test("is never refused, whatever else its address sends", async () => {
    const { runUnverified } = limits();
    await times(3, () => expect(runUnverified(address, refuse)).rejects.toBe(refusal));
    await expect(runUnverified(address, refuse)).rejects.toMatchObject({ code: "rate-limited" });
    await times(10, () => runUnverified(address, async () => {}));
    await expect(runUnverified(address, refuse)).rejects.toMatchObject({ code: "rate-limited" });
  });

  test("costs its address nothing if it is valid or fails on our side", async () => {
    const { runUnverified } = limits();
    await times(10, () => runUnverified(address, async () => {}));
    const away = new HeraldError("bus-unavailable", "the bus is unavailable");
    await times(10, () => expect(runUnverified(address, () => Promise.reject(away))).rejects.toBe(away));
    await expect(runUnverified(address, refuse)).rejects.toBe(refusal);
  });
});

test("a project's usage counts what was granted, and only for that project", async () => {
  const { usedBy, countRequest, reserveSends, countDryRun } = limits();
  const one = caller();
  const { projectId } = one as { projectId: ReturnType<typeof newProjectId> };
  expect(await usedBy(projectId)).toEqual({ requests: 0, sends: 0, dryRuns: 0 });
  await countRequest(one);
  await reserveSends(projectId, 9);
  await times(2, () => countDryRun(projectId));
  await expect(countDryRun(projectId)).rejects.toMatchObject({ code: "quota-exceeded" });
  expect(await usedBy(projectId)).toEqual({ requests: 1, sends: 4, dryRuns: 2 });
  expect(await usedBy(newProjectId(now))).toEqual({ requests: 0, sends: 0, dryRuns: 0 });
});

test("a limit that changes applies to what is counted already, and is divided by the gateways", async () => {
  const own: Own = { project: 4, sends: 10, dryRuns: 2 };
  let gateways = 1;
  const { countRequest, reserveSends, usedBy } = createRateLimits(
    { HERALD_GATEWAY_LIMIT_FAILURES: 3 } as GatewayConfig,
    limitsFor(own, () => gateways),
  );
  const projectId = newProjectId(now);
  expect((await reserveSends(projectId, 7)).granted).toBe(7);
  own.sends = 5;
  expect((await reserveSends(projectId, 1)).granted).toBe(0);
  own.sends = 20;
  expect((await reserveSends(projectId, 1)).granted).toBe(1);
  gateways = 2;
  expect((await reserveSends(projectId, 10)).granted).toBe(2);
  own.sends = 21;
  expect((await reserveSends(projectId, 10)).granted).toBe(1);
  expect((await usedBy(projectId)).sends).toBe(11);
  const one = () => countRequest({ ...caller(projectId), tokenId: newTokenId(now) } as Caller);
  await one();
  await one();
  await expect(one()).rejects.toMatchObject({ headers: { "ratelimit-policy": '"project";q=2;w=10' } });
  own.project = 100;
  expect((await one())["ratelimit-policy"]).toBe('"token";q=25;w=10, "project";q=50;w=10');
});
