import { describe, expect, test } from "vitest";
import { newOperatorId, newProjectId, newTokenId, newTopicId } from "../ids.ts";
import { secretHash } from "../records.ts";
import { statsRequests } from "./analytics.ts";
import { operatorRequests } from "./operators.ts";
import { projectRequests, tokenRequests } from "./projects.ts";
import { topicRequests } from "./topics.ts";

const projectId = newProjectId(new Date());

describe("statistics are asked for", () => {
  const request = {
    from: "2030-01-01T00:00:00.000Z",
    to: "2030-01-02T00:00:00.000Z",
    interval: "hour",
    timeZone: "Europe/Berlin",
  };
  const takes = (change: object) =>
    statsRequests.get.request.safeParse({ projectId, request: { ...request, ...change } }).success;

  test.each([
    ["as they are", {}, true],
    ["in a time zone that there is not", { timeZone: "Mars/Olympus" }, false],
    ["in an offset", { timeZone: "+02:00" }, false],
    ["for as many hours as a chart can show", { to: "2030-02-11T16:00:00.000Z" }, true],
    ["for one hour more", { to: "2030-02-11T17:00:00.000Z" }, false],
    ["for all time", { from: "0000-01-01T00:00:00.000Z", to: "9999-12-31T23:59:59.999Z" }, false],
  ])("%s: %j is taken: %s", (_, change, taken) => {
    expect(takes(change)).toBe(taken);
  });
});

test("a topic is made under an id of a topic", () => {
  const takes = (topicId: string) => topicRequests.create.request.safeParse({ projectId, topicId, name: "a" }).success;
  expect(takes(newTopicId(new Date()))).toBe(true);
  expect(takes("top_1")).toBe(false);
});

test.each([
  [operatorRequests.create, { operatorId: newOperatorId(new Date()), name: "a", role: "viewer", projects: [] }],
  [operatorRequests.rotate, { operatorId: newOperatorId(new Date()) }],
  [tokenRequests.create, { projectId, tokenId: newTokenId(new Date()), name: "a", scopes: ["send"] }],
  [projectRequests.create, { projectId, tokenId: newTokenId(new Date()), name: "a", openRegistration: true }],
] as const)("$name takes the hash of a token alone, because it becomes a key", ({ request }, fields) => {
  const takes = (tokenHash: unknown) => request.safeParse({ ...fields, tokenHash }).success;
  expect(takes(secretHash("hop_…"))).toBe(true);
  for (const other of ["", "a.b", "*", ">", "x".repeat(64), secretHash("hop_…").toUpperCase(), `${secretHash("a")}\n`])
    expect(takes(other), other).toBe(false);
});
