import {
  newOperatorId,
  newOperatorToken,
  newProjectId,
  newProjectToken,
  newTokenId,
  type OperatorRecord,
  secretHash,
  type TokenRecord,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { type BucketReplica, createOperatorDirectory, createTokenDirectory } from "./directories.ts";
import type { RateLimits } from "./rate-limits.ts";

const now = new Date("2030-01-31T09:00:00.000Z");
const record = (expiresAt?: string): TokenRecord => ({
  id: newTokenId(now),
  projectId: newProjectId(now),
  scopes: ["read"],
  ...(expiresAt === undefined ? {} : { expiresAt }),
});

/** A replica that has some records of its bucket, which has more. */
const createReplica = <Value>(seen: Record<string, Value>, stored: Record<string, Value>) => {
  const looked: string[] = [];
  let barred = false;
  const replica: BucketReplica<Value> = {
    get: (key) => seen[key],
    entries: () => new Map(Object.entries(seen)).entries(),
    fetch: async (key, permit) => {
      await permit();
      looked.push(key);
      return stored[key];
    },
    ready: () => true,
    start: () => {},
    stop: async () => {},
  };
  const limits: RateLimits = {
    countFailure: async () => {},
    countAnonymous: async () => {},
    countLookup: async () => {},
    countRequest: async () => ({}),
    countBatch: async () => ({}),
    reserveSends: async (_, count) => ({
      granted: count,
      refund: async () => {},
      refusal: new HeraldError("quota-exceeded", ""),
    }),
    reserveNewDevice: async () => ({
      granted: 1,
      refund: async () => {},
      refusal: new HeraldError("rate-limited", ""),
    }),
    countDryRun: async () => {},
    countUpload: async () => {},
    countImported: async () => 0,
    usedBy: async () => ({ requests: 0, sends: 0, dryRuns: 0 }),
    countSignIn: async () => {},
    countWhileVerifying: async (_, look) => {
      if (barred) throw new HeraldError("rate-limited", "too many");
      return look();
    },
    runUnverified: (_, work) => work(),
  };
  return {
    replica,
    limits,
    looked,
    bar: () => {
      barred = true;
    },
  };
};

const directory = (seen: Record<string, TokenRecord>, stored: Record<string, TokenRecord> = {}) => {
  const { replica, limits, ...rest } = createReplica(seen, stored);
  return { ...createTokenDirectory(replica, limits, () => now), ...rest };
};

describe("a project token", () => {
  test("that is replicated is found without a read from the bus", async () => {
    const token = newProjectToken();
    const known = record();
    const tokens = directory({ [secretHash(token)]: known });
    tokens.bar();
    expect(await tokens.find(token, "address")).toEqual(known);
    expect(tokens.looked).toEqual([]);
  });

  test("that is not replicated yet is read from the bus", async () => {
    const token = newProjectToken();
    const fresh = record();
    const tokens = directory({}, { [secretHash(token)]: fresh });
    expect(await tokens.find(token, "address")).toEqual(fresh);
    expect(tokens.looked).toEqual([secretHash(token)]);
  });

  test("that is malformed costs no read", async () => {
    const tokens = directory({});
    for (const text of ["nonsense", `${newProjectToken()}x`, newProjectToken().slice(0, -1)]) {
      expect(await tokens.find(text, "address")).toBeUndefined();
    }
    expect(tokens.looked).toEqual([]);
  });

  test("that is unknown costs no read when the address was refused too often", async () => {
    const tokens = directory({});
    tokens.bar();
    await expect(tokens.find(newProjectToken(), "address")).rejects.toMatchObject({ code: "rate-limited" });
    expect(tokens.looked).toEqual([]);
  });

  test.each([
    ["a moment ago", "2030-01-31T08:59:59.999Z", false],
    ["now", "2030-01-31T09:00:00.000Z", false],
    ["in a moment", "2030-01-31T09:00:00.001Z", true],
  ])("that expires %s is good: %s %s", async (_, expiresAt, good) => {
    const [replicated, read] = [newProjectToken(), newProjectToken()];
    const tokens = directory(
      { [secretHash(replicated)]: record(expiresAt) },
      { [secretHash(read)]: record(expiresAt) },
    );
    for (const token of [replicated, read]) expect((await tokens.find(token, "address")) !== undefined).toBe(good);
  });
});

describe("an operator", () => {
  const record: OperatorRecord = { id: newOperatorId(now), name: "Maria", role: "viewer", projects: [] };
  const operators = (seen: Record<string, OperatorRecord>, stored: Record<string, OperatorRecord>) => {
    const { replica, limits, ...rest } = createReplica(seen, stored);
    return {
      ...createOperatorDirectory("admin-token", replica, limits, (own) => own),
      ...rest,
    };
  };

  test.each([
    ["replicated", 0],
    ["not replicated yet", 1],
  ])("who is %s is found by token and by session, with %i reads each", async (where, reads) => {
    const token = newOperatorToken();
    const tokenHash = secretHash(token);
    const records = { [tokenHash]: record };
    const found = operators(where === "replicated" ? records : {}, records);
    expect(await found.find(token, "address")).toEqual({ ...record, tokenHash });
    expect(await found.findByHash(tokenHash, "address")).toEqual({ ...record, tokenHash });
    expect(found.looked).toHaveLength(2 * reads);
  });

  test("who is unknown costs no read when the address was refused too often", async () => {
    const found = operators({}, {});
    found.bar();
    const tokenHash = secretHash(newOperatorToken());
    await expect(found.findByHash(tokenHash, "address")).rejects.toMatchObject({ code: "rate-limited" });
    expect(found.looked).toEqual([]);
  });
});
