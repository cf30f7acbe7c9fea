import { newDeviceId, newProjectId, newTokenId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { describe, expect, test } from "vitest";
import type { Caller } from "../auth/caller.ts";
import { createRateLimits } from "./rate-limits.ts";

const now = new Date();
const limits = () =>
  createRateLimits({
    failures: 3,
    clients: 3,
    token: 3,
    project: 5,
    device: 2,
    sends: 4,
    dryRuns: 2,
    newDevices: 1_000,
  });
const caller = (projectId = newProjectId(now)): Caller => ({
  kind: "project",
  projectId,
  tokenId: newTokenId(now),
  scopes: [],
});
const times = async (count: number, work: () => Promise<unknown>): Promise<void> => {
  for (let index = 0; index < count; index++) await work();
};

test("a caller is told what is left, and when there is more", async () => {
  const { request } = limits();
  const one = caller();
  expect(await request(one)).toEqual({
    "ratelimit-policy": '"token";q=3;w=10, "project";q=5;w=10',
    ratelimit: '"token";r=2;t=10, "project";r=4;t=10',
  });
  expect((await request(one)).ratelimit).toMatch(/^"token";r=1;t=\d+, "project";r=3;t=\d+$/);
  const device = { kind: "device", projectId: newProjectId(now), deviceId: newDeviceId(now) } as const;
  expect((await request(device)).ratelimit).toBe('"device";r=1;t=10');
  expect(await request({ kind: "admin" })).toEqual({});
  expect(await request({ kind: "client" })).toEqual({});
});

test("a token that runs away leaves room for the others of its project, and other projects alone", async () => {
  const { request } = limits();
  const [runaway, other, stranger] = [caller(), caller(), caller()];
  const sibling = { ...runaway, tokenId: newTokenId(now) } as Caller;
  await times(3, () => request(runaway));
  for (let again = 0; again < 5; again++)
    await expect(request(runaway)).rejects.toMatchObject({
      code: "rate-limited",
      retryAfterSeconds: 10,
      headers: { "ratelimit-policy": '"token";q=3;w=10', ratelimit: '"token";r=0;t=10' },
    });
  await times(2, () => request(sibling));
  await expect(request(sibling)).rejects.toMatchObject({ headers: { "ratelimit-policy": '"project";q=5;w=10' } });
  await request(other);
  await request(stranger);
});

test("a project may send so many notifications in an hour, and is told when it may again", async () => {
  const { sends } = limits();
  const [one, other] = [newProjectId(now), newProjectId(now)];
  expect(await sends(one, 3)).toMatchObject({ granted: 3 });
  const some = await sends(one, 5);
  expect(some).toMatchObject({
    granted: 1,
    refusal: {
      code: "quota-exceeded",
      message: "notifications: at most 4 in 3600 s are accepted here; come back in 3600 s",
      retryAfterSeconds: 3_600,
      headers: { "ratelimit-policy": '"sends";q=4;w=3600', ratelimit: '"sends";r=0;t=3600' },
    },
  });
  expect(await sends(one, 1)).toMatchObject({ granted: 0 });
  await some.giveBack(1);
  expect(await sends(one, 2)).toMatchObject({ granted: 1 });
  expect(await sends(other, 1)).toMatchObject({ granted: 1 });
});

test("each notification of a batch counts as a request, and a batch for which there is no room counts as none", async () => {
  const { request, moreRequests } = limits();
  const one = caller();
  await request(one);
  await expect(moreRequests(one, 3)).rejects.toMatchObject({
    code: "rate-limited",
    message:
      "requests: each notification of a batch counts as one: at most 3 in 10 s are accepted here; come back in 10 s",
    headers: { ratelimit: '"token";r=0;t=10' },
  });
  expect((await moreRequests(one, 2)).ratelimit).toBe('"token";r=0;t=10, "project";r=2;t=10');
  await expect(request(one)).rejects.toMatchObject({ code: "rate-limited" });
  const sibling = { ...one, tokenId: newTokenId(now) } as Caller;
  await expect(moreRequests(sibling, 3)).rejects.toMatchObject({
    headers: { "ratelimit-policy": '"project";q=5;w=10' },
  });
  expect((await moreRequests(sibling, 2)).ratelimit).toBe('"token";r=1;t=10, "project";r=0;t=10');
  expect(await moreRequests({ kind: "admin" }, 5)).toEqual({});
});

test("a project may make so many dry runs in a minute, whatever it sends", async () => {
  const { sends, dryRun } = limits();
  const project = newProjectId(now);
  await times(2, () => dryRun(project));
  await expect(dryRun(project)).rejects.toMatchObject({
    code: "quota-exceeded",
    message: "dry runs: at most 2 in 60 s are accepted here; come back in 60 s",
    retryAfterSeconds: 60,
    headers: { "ratelimit-policy": '"dry-runs";q=2;w=60', ratelimit: '"dry-runs";r=0;t=60' },
  });
  expect(await sends(project, 1)).toMatchObject({ granted: 1 });
  await dryRun(newProjectId(now));
});

const address = "203.0.113.7";

test("an address that was refused too often is refused before anything is looked up for it", async () => {
  const { failure, suspect } = limits();
  await times(3, () => failure(address));
  let looked = 0;
  const look = async () => ++looked;
  await expect(suspect(address, look)).rejects.toMatchObject({ code: "rate-limited" });
  expect(looked).toBe(0);
  expect(await suspect("203.0.113.8", look)).toBe(1);
});

test("no more is looked up at once for an address than may be refused, and what is found costs nothing", async () => {
  const { suspect } = limits();
  await times(10, () => suspect(address, async () => true));
  let asked = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const all = Array.from({ length: 10 }, () =>
    suspect(address, () => {
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

describe("what shows by itself that it is true", () => {
  const refusal = new HeraldError("open-token-invalid", "token: is not an open token");
  const refuse = () => Promise.reject(refusal);

  test("is never held back, whatever else comes from its address", async () => {
    const { unproven } = limits();
    await times(3, () => expect(unproven(address, refuse)).rejects.toBe(refusal));
    await expect(unproven(address, refuse)).rejects.toMatchObject({ code: "rate-limited" });
    await times(10, () => unproven(address, async () => {}));
    await expect(unproven(address, refuse)).rejects.toMatchObject({ code: "rate-limited" });
  });

  test("costs its address nothing, and neither does what could not be done for it", async () => {
    const { unproven } = limits();
    await times(10, () => unproven(address, async () => {}));
    const away = new HeraldError("bus-unavailable", "the bus is unavailable");
    await times(10, () => expect(unproven(address, () => Promise.reject(away))).rejects.toBe(away));
    await expect(unproven(address, refuse)).rejects.toBe(refusal);
  });
});
