import { newDeviceId, newProjectId, newTokenId } from "@herald/contracts";
import { expect, test } from "vitest";
import type { Caller } from "../auth/caller.ts";
import { createRateLimits } from "./rate-limits.ts";

const now = new Date();
const limits = () =>
  createRateLimits({ failures: 3, clients: 3, token: 3, project: 5, device: 2, sends: 4, newDevices: 1_000 });
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
  const { send } = limits();
  const [one, other] = [newProjectId(now), newProjectId(now)];
  await times(4, () => send(one));
  const refused = await send(one).catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: "quota-exceeded",
    message: "notifications: at most 4 in 3600 s are accepted here; come back in 3600 s",
    retryAfterSeconds: 3_600,
    headers: { "ratelimit-policy": '"sends";q=4;w=3600', ratelimit: '"sends";r=0;t=3600' },
  });
  await send(other);
});

test("an address that was refused too often is barred, in whatever way it is written", async () => {
  const { failure, barred } = limits();
  await times(3, () => failure("2001:db8::1"));
  await barred("2001:db8::2");
  await expect(failure("2001:db8::3")).rejects.toMatchObject({ code: "rate-limited" });
  await expect(barred("2001:db8::4")).rejects.toMatchObject({ code: "rate-limited" });
  await barred("2001:db9::1");
});
