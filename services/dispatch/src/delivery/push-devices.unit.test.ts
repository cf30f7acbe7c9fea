import { newDeviceId, type ProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import type { Outcome } from "../domain/outcome.ts";
import type { Sendable } from "../domain/settle-row.ts";
import type { Channel } from "../providers/provider-pool.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";
import { createNotificationCache, stateMaxAgeMs } from "./notification-cache.ts";
import { chunkSize, type PushDeps, pushDevices } from "./push-devices.ts";

const projectId: ProjectId = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
const start = Date.parse("2030-01-01");
const document: NotificationRecord = {
  _id: "ntf_1",
  projectId,
  content: { title: "Hello", targets: ["topic:news"] },
  acceptedAt: new Date(start),
  expiresAt: new Date(start + 3_600_000),
  status: "sending",
  step: "delivering",
  nextAt: new Date(start + 60_000),
};
const never = new AbortController().signal;
const accepted: Outcome = { kind: "accepted" };

const devices = (count: number): Sendable[] =>
  Array.from({ length: count }, (_, index) => ({
    id: newDeviceId(new Date(start)),
    token: `token-${index}`,
    tokenAt: start,
    attempts: 0,
    repeat: false,
  }));

/** A provider that accepts, and a database where `failures` reads of the notification's state fail, beginning with read `from`. */
const world = ({ from, failures }: { from: number; failures: number }) => {
  let time = start;
  let reads = 0;
  const pushed: string[] = [];
  const now = () => new Date(time);
  const cache = createNotificationCache(
    {
      get: async () => document,
      getState: async () => {
        reads++;
        if (reads >= from && reads < from + failures) throw new TypeError("unexpected");
        return document;
      },
    },
    { maxBytes: 100_000, now },
  );
  const permit = { route: { name: "apns" } };
  const channel = {
    version: "1",
    client: {
      routeOf: () => "apns",
      prepare:
        () =>
        async ({ token }: Sendable) => {
          pushed.push(token);
          return accepted;
        },
    },
    routes: { anyBlocked: () => false, blockedUntil: () => undefined, acquire: () => permit, onSuccess: () => {} },
    refused: () => false,
    isSecond: () => false,
    reserve: async () => {
      // Time passes, so that the state is read before each chunk.
      time += stateMaxAgeMs;
    },
    release: () => {},
    prove: () => {},
  } as unknown as Channel;
  const deps = {
    cache,
    pool: { lookup: async () => ({ kind: "ready", channel }) },
    rules: { byProject: new Map(), pauses: new Map(), loading: undefined },
    openTokens: { signer: () => () => "token" },
    now,
  } as unknown as PushDeps;
  return { deps, pushed, cached: cache.pin(document, now()) };
};

const push = ({ deps, cached }: ReturnType<typeof world>, all: readonly Sendable[]) =>
  pushDevices(deps, { cached, devices: all, served: { platform: "ios", lane: "direct" }, skips: new Map() }, never);

test("an unexpected error between two chunks is tried again, and each device is pushed once", async () => {
  const all = devices(3 * chunkSize);
  const one = world({ from: 2, failures: 2 });
  const { outcomes, blocked } = await push(one, all);
  expect(one.pushed).toEqual(all.map(({ token }) => token));
  expect(outcomes).toEqual(all.map(() => accepted));
  expect(blocked.size).toBe(0);
});

test("when the error persists, sent devices keep their outcomes and the rest waits", async () => {
  const all = devices(3 * chunkSize);
  const one = world({ from: 2, failures: 1_000 });
  const { outcomes, blocked, faults } = await push(one, all);
  const sent = one.pushed.length;
  expect(sent % chunkSize).toBe(0);
  expect(sent).toBeGreaterThan(0);
  expect(sent).toBeLessThan(all.length);
  expect(outcomes.filter((outcome) => outcome?.kind === "accepted")).toHaveLength(sent);
  expect([...blocked.keys()]).toEqual(Array.from({ length: all.length - sent }, (_, index) => sent + index));
  expect(faults).toHaveLength(1);
});

test("before the first push it is thrown, so that the message is redelivered", async () => {
  await expect(push(world({ from: 1, failures: 1_000 }), devices(10))).rejects.toThrow("unexpected");
});

test.each<{ outcome: Outcome; said: Outcome | undefined }>([
  { outcome: accepted, said: accepted },
  { outcome: { kind: "misconfigured", providerReason: "InvalidProviderToken" }, said: undefined },
])("a trial that is also the second push of a doubt ends the doubt: $outcome.kind", async ({ outcome, said }) => {
  const one = world({ from: 1, failures: 0 });
  const { channel } = (await one.deps.pool.lookup(projectId, "apns")) as unknown as { channel: Channel };
  const answers: unknown[] = [];
  const nextTrialAt = new Date(start);
  Object.assign(channel, {
    client: { routeOf: () => "apns", prepare: () => async () => outcome },
    isSecond: () => true,
    onSecondAnswer: (answer: unknown) => answers.push(answer),
  });
  Object.assign(one.deps.pool, {
    lookup: async () => ({ kind: "paused", nextTrialAt }),
    trials: { take: async () => ({ channel, nextAt: nextTrialAt }), giveBack: () => {} },
  });
  await push(one, devices(1));
  expect(answers).toEqual([said]);
});
