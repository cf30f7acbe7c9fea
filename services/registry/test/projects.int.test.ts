import {
  defaultProtectedMetadata,
  defaultScopes,
  newProjectId,
  newTokenId,
  newTopicId,
  ProjectDeletedV1,
  type ProjectId,
  projectRequests,
  projectSettingsKey,
  secretHash,
  type TokenId,
  tokenRequests,
  topicRequests,
} from "@herald/contracts";
import { createCounts } from "@herald/mongo";
import { eventually } from "@herald/testing";
import type { Document } from "mongodb";
import { describe, expect, test } from "vitest";
import { createProjectReplication } from "../src/jobs/replicate.ts";
import { createProjectStore } from "../src/stores/project-store.ts";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";
import { seedDevices } from "./seed-devices.ts";

const registry = useRegistry({ overrides: { reconcileEveryMs: 300, removeEveryMs: 50 } });

const firstPage = { by: "page" as const, page: 1, perPage: 20 };
const projects = () => registry.db.collection<Document & { _id: string }>("projects");

const create = (projectId: ProjectId, tokenId: TokenId = newTokenId(new Date()), secret = "secret") =>
  registry.ask(projectRequests.create, {
    projectId,
    name: "App",
    openRegistration: true,
    tokenId,
    tokenHash: secretHash(secret),
  });

describe("a project", () => {
  test("is replicated before the reply to its creation, and created once", async () => {
    const projectId = newProjectId(new Date());
    const tokenId = newTokenId(new Date());
    const { project, created } = await create(projectId, tokenId, projectId);
    expect(created).toBe(true);
    expect(project).toMatchObject({ id: projectId, name: "App", open_registration: true });
    expect((await registry.tokens.get(secretHash(projectId)))?.value).toEqual({
      id: tokenId,
      projectId,
      scopes: defaultScopes,
    });
    expect((await registry.settings.get(projectSettingsKey(projectId)))?.value).toEqual({
      id: projectId,
      openRegistration: true,
      protectedMetadata: defaultProtectedMetadata,
    });
    expect(await create(projectId, tokenId, projectId)).toEqual({ project, created: false });
    expect(await registry.ask(projectRequests.get, { projectId })).toEqual(project);
  });

  test("is listed until it is deleted", async () => {
    const projectId = await registry.project();
    const listed = async () => {
      const ids: string[] = [];
      for (let after: string | null = ""; after !== null; ) {
        const page: { data: { id: string }[]; next?: string | null } = await registry.ask(projectRequests.list, {
          page: { by: "key", after, perPage: 2 },
        });
        ids.push(...page.data.map(({ id }) => id));
        after = page.next ?? null;
      }
      return ids;
    };
    expect(await listed()).toContain(projectId);
    await registry.ask(projectRequests.delete, { projectId });
    expect(await listed()).not.toContain(projectId);
  });

  test("changes are replicated before the reply; of many changes the last one wins", async () => {
    const projectId = await registry.project();
    const change = (openRegistration: boolean) => registry.ask(projectRequests.change, { projectId, openRegistration });
    expect(await change(false)).toMatchObject({ open_registration: false, name: "App" });
    expect((await registry.settings.get(projectSettingsKey(projectId)))?.value.openRegistration).toBe(false);
    expect(await registry.ask(projectRequests.change, { projectId, name: "New" })).toMatchObject({ name: "New" });

    const second = registry.newApp();
    await second.start();
    await Promise.all(Array.from({ length: 20 }, (_, at) => change(at % 2 === 0)));
    await second.stop();
    const { open_registration } = await registry.ask(projectRequests.get, { projectId });
    expect((await registry.settings.get(projectSettingsKey(projectId)))?.value.openRegistration).toBe(
      open_registration,
    );
  });

  test("has limits of its own, which are replicated before the reply, and taken back one by one", async () => {
    const projectId = newProjectId(new Date());
    await create(projectId);
    const set = { sends: 7, "event-streams": 0, devices: 3 };
    expect(await registry.ask(projectRequests.changeLimits, { projectId, limits: set })).toEqual({ limits: set });
    const limits = { "event-streams": 0, devices: 4 };
    const change = { projectId, limits: { sends: null, devices: 4 } };
    expect(await registry.ask(projectRequests.changeLimits, change)).toEqual({ limits });
    expect(await registry.ask(projectRequests.changeLimits, { projectId, limits: {} })).toEqual({ limits });
    expect((await registry.settings.get(projectSettingsKey(projectId)))?.value.limits).toEqual(limits);
    await registry.ask(projectRequests.change, { projectId, name: "Renamed" });
    expect((await registry.settings.get(projectSettingsKey(projectId)))?.value.limits).toEqual(limits);
    const unknown = { projectId: newProjectId(new Date()), limits: { sends: 7 } };
    expect(await failure(registry.ask(projectRequests.changeLimits, unknown))).toMatchObject({
      code: "project-not-found",
    });
  });

  test("is listed among chosen ones alone", async () => {
    const ids = [newProjectId(new Date()), newProjectId(new Date()), newProjectId(new Date())];
    for (const id of ids) await create(id);
    const { data } = await registry.ask(projectRequests.list, {
      page: { ...firstPage, perPage: 100 },
      only: ids.slice(1),
    });
    expect(data.map(({ id }) => id).sort()).toEqual(ids.slice(1).sort());
    expect((await registry.ask(projectRequests.list, { page: firstPage, only: [] })).data).toEqual([]);
  });

  test("has a key that no other project gets until it is deleted, and that never changes", async () => {
    const key = `shop-${Date.now()}`;
    const withKey = (projectId = newProjectId(new Date())) =>
      registry.ask(projectRequests.create, { projectId, name: "App", key, openRegistration: true });
    const { project } = await withKey();
    expect(project).toMatchObject({ key });
    expect((await registry.ask(tokenRequests.list, { projectId: project.id, page: firstPage })).data).toEqual([]);
    expect(await withKey(project.id)).toEqual({ project, created: false });
    const found = async (only?: ProjectId[]) =>
      (await registry.ask(projectRequests.list, { page: firstPage, key, ...(only && { only }) })).data.map(
        ({ id }) => id,
      );
    expect(await found()).toEqual([project.id]);
    expect(await found([newProjectId(new Date())])).toEqual([]);
    expect(await failure(withKey())).toMatchObject({ code: "project-key-taken" });

    const other = await registry.project();
    const setKey = (projectId: ProjectId, wanted: string) =>
      registry.ask(projectRequests.setKey, { projectId, key: wanted });
    expect(await failure(setKey(other, key))).toMatchObject({ code: "project-key-taken" });
    expect(await failure(setKey(project.id, "another"))).toMatchObject({
      code: "validation-failed",
      messages: [`key: the project has the key ${key}, which is fixed`],
    });
    expect(await failure(setKey(newProjectId(new Date()), "another"))).toMatchObject({ code: "project-not-found" });
    expect(await setKey(project.id, key)).toEqual(project);
    await registry.ask(projectRequests.delete, { projectId: project.id });
    expect(await setKey(other, key)).toMatchObject({ id: other, key });
    expect(await found()).toEqual([other]);
  });

  test("that changes while an older state is being replicated is not reverted", async () => {
    const projectId = await registry.project();
    const { db, tokens, settings, rules } = registry;
    const projects = createProjectStore(db, createCounts(), () => new Date());
    let overtaken = false;
    const overtaking = {
      ...projects,
      findAny: async (id: ProjectId) => {
        const seen = await projects.findAny(id);
        if (!overtaken) {
          overtaken = true;
          await registry.ask(projectRequests.change, { projectId, openRegistration: true });
        }
        return seen;
      },
    };
    await projects.change(projectId, { openRegistration: false });
    await createProjectReplication({
      projects: overtaking,
      ...{ tokens, settings, rules },
      now: () => new Date(),
    }).replicateSettings(projectId);
    expect((await settings.get(projectSettingsKey(projectId)))?.value.openRegistration).toBe(true);
  });

  test("that does not exist is reported as such", async () => {
    const projectId = newProjectId(new Date());
    const tokenId = newTokenId(new Date());
    const nothing = { code: "project-not-found" };
    expect(await failure(registry.ask(projectRequests.get, { projectId }))).toMatchObject(nothing);
    expect(await failure(registry.ask(projectRequests.change, { projectId, name: "x" }))).toMatchObject(nothing);
    expect(await failure(registry.ask(projectRequests.delete, { projectId }))).toMatchObject(nothing);
    expect(await failure(registry.ask(tokenRequests.list, { projectId, page: firstPage }))).toMatchObject(nothing);
    expect(await failure(registry.ask(tokenRequests.revoke, { projectId, tokenId }))).toMatchObject(nothing);
    const token = { tokenId, tokenHash: secretHash("x"), name: "x", scopes: [...defaultScopes] };
    expect(await failure(registry.ask(tokenRequests.create, { projectId, ...token }))).toMatchObject(nothing);
  });
});

describe("a token", () => {
  const make = (projectId: ProjectId, secret: string, rest: { tokenId?: TokenId; expiresAt?: string } = {}) =>
    registry.ask(tokenRequests.create, {
      projectId,
      tokenId: newTokenId(new Date()),
      tokenHash: secretHash(secret),
      name: "ci",
      scopes: ["send"],
      ...rest,
    });

  test("is replicated before the reply to its creation, listed, and removed before the reply to its revocation", async () => {
    const projectId = await registry.project();
    const expiresAt = "2031-01-01T00:00:00.000Z";
    const token = await make(projectId, "a", { expiresAt });
    expect(token).toMatchObject({ name: "ci", scopes: ["send"], expires_at: expiresAt });
    expect((await registry.tokens.get(secretHash("a")))?.value).toEqual({
      id: token.id,
      projectId,
      scopes: ["send"],
      expiresAt,
    });
    const list = () => registry.ask(tokenRequests.list, { projectId, page: firstPage });
    expect(await list()).toMatchObject({ pagination: { count: 2 }, data: [{ name: "first" }, { id: token.id }] });
    expect(JSON.stringify(await list())).not.toContain(secretHash("a"));

    expect(await registry.ask(tokenRequests.revoke, { projectId, tokenId: token.id })).toEqual({});
    expect(await registry.tokens.get(secretHash("a"))).toBeUndefined();
    expect(await list()).toMatchObject({ pagination: { count: 1 }, data: [{ name: "first" }] });
    expect(await failure(registry.ask(tokenRequests.revoke, { projectId, tokenId: token.id }))).toMatchObject({
      code: "token-not-found",
    });
  });

  test("is created once, however often it is requested", async () => {
    const projectId = await registry.project();
    const tokenId = newTokenId(new Date());
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => make(projectId, "b", { tokenId })));
    expect(new Set(answers.map((token) => JSON.stringify(token))).size).toBe(1);
    expect(await registry.ask(tokenRequests.list, { projectId, page: firstPage })).toMatchObject({
      pagination: { count: 2 },
    });
  });
});

describe("deletion of a project", () => {
  test("removes it from the gateways at once, and everything it had afterwards", async () => {
    const projectId = await registry.project();
    const other = await registry.project();
    // More than one command removes.
    const devices = Array.from({ length: 1_100 }, (_, at) => ({
      token: `t${at}`,
      platform: "android" as const,
      topics: ["news"],
    }));
    for await (const _ of seedDevices(registry.db, projectId, devices));
    await registry.register(other, apnsToken("stays"), { topics: ["news"] });

    expect(await registry.ask(projectRequests.deviceQuota, { projectId: other })).toEqual({
      devices: 1,
      limit: 10_000_000,
    });
    expect(await registry.ask(projectRequests.deviceQuota, { projectId })).toMatchObject({ devices: 1_100 });

    expect(await registry.ask(projectRequests.delete, { projectId })).toEqual({});
    expect(await failure(registry.ask(projectRequests.deviceQuota, { projectId }))).toMatchObject({
      code: "project-not-found",
    });
    expect(await registry.tokens.get(secretHash(projectId))).toBeUndefined();
    expect(await registry.settings.get(projectSettingsKey(projectId))).toBeUndefined();
    expect(await failure(registry.ask(projectRequests.get, { projectId }))).toMatchObject({
      code: "project-not-found",
    });
    expect(await failure(registry.ask(projectRequests.delete, { projectId }))).toMatchObject({
      code: "project-not-found",
    });

    await eventually(
      async () => {
        expect(await registry.lastEvent(projectId, ProjectDeletedV1)).toMatchObject({ project_id: projectId });
        for (const name of ["devices", "topics"])
          expect(await registry.db.collection(name).countDocuments({ projectId })).toBe(0);
        expect(await projects().findOne({ _id: projectId })).toBeNull();
      },
      { timeoutMs: 20_000 },
    );
    expect(await registry.db.collection("devices").countDocuments({ projectId: other })).toBe(1);
    expect(await registry.db.collection("topics").countDocuments({ projectId: other })).toBe(1);
  });

  test("refuses registrations and topics from then on", async () => {
    const projectId = await registry.project();
    await registry.register(projectId, apnsToken("a"));
    await registry.ask(projectRequests.delete, { projectId });
    const nothing = { code: "project-not-found" };
    expect(await failure(registry.register(projectId, apnsToken("b")))).toMatchObject(nothing);
    const topic = { projectId, topicId: newTopicId(new Date()), name: "news" };
    expect(await failure(registry.ask(topicRequests.create, topic))).toMatchObject(nothing);
  });

  test("continues after a crash, and removes what a concurrent request left behind", async () => {
    const projectId = await registry.project();
    const at = new Date();
    await projects().updateOne({ _id: projectId }, { $set: { deletedAt: at } });
    for await (const _ of seedDevices(registry.db, projectId, [{ token: "late", platform: "android", topics: ["x"] }]));
    await eventually(async () => {
      expect(await registry.tokens.get(secretHash(projectId))).toBeUndefined();
      expect(await registry.db.collection("devices").countDocuments({ projectId })).toBe(0);
      expect(await registry.db.collection("topics").countDocuments({ projectId })).toBe(0);
      expect(await projects().findOne({ _id: projectId })).toBeNull();
    });
  });
});

describe("a crash between database and bucket", () => {
  test("after a creation: the gateways learn of the project", async () => {
    const projectId = newProjectId(new Date());
    const hash = secretHash(`${projectId} token`);
    const createdAt = new Date();
    const tokenId = newTokenId(createdAt);
    const token = { id: tokenId, hash, name: "first", scopes: defaultScopes, createdAt };
    const settings = { name: "App", openRegistration: false, protectedMetadata: [] };
    await projects().insertOne({ _id: projectId, ...settings, tokens: [token], createdAt });
    await eventually(async () => {
      expect((await registry.tokens.get(hash))?.value).toEqual({ id: tokenId, projectId, scopes: defaultScopes });
      expect((await registry.settings.get(projectSettingsKey(projectId)))?.value.openRegistration).toBe(false);
    });
  });

  test("after a revocation: the token is removed from the gateways, and a repeated request gets a reply", async () => {
    const projectId = await registry.project();
    const hash = secretHash(projectId);
    const { data } = await registry.ask(tokenRequests.list, { projectId, page: firstPage });
    await projects().updateOne({ _id: projectId }, { $set: { "tokens.0.revokedAt": new Date() } });
    expect(await registry.ask(tokenRequests.list, { projectId, page: firstPage })).toMatchObject({ data: [] });
    await eventually(async () => {
      expect(await registry.tokens.get(hash)).toBeUndefined();
      expect(await projects().findOne({ _id: projectId })).toMatchObject({ tokens: [] });
    });
    expect(data).toHaveLength(1);
  });

  test("entries without a project are removed, stale entries are repaired, others stay", async () => {
    const projectId = await registry.project();
    const stranger = newProjectId(new Date());
    const id = newTokenId(new Date());
    await registry.tokens.put("f".repeat(64), { id, projectId: stranger, scopes: ["send"] });
    await registry.tokens.put("e".repeat(64), { id, projectId, scopes: ["send"] });
    await registry.settings.put(projectSettingsKey(stranger), { id: stranger, openRegistration: true });
    await registry.settings.put(projectSettingsKey(projectId), { id: projectId, openRegistration: false });
    const untouched = await registry.tokens.get(secretHash(projectId));
    await eventually(async () => {
      expect(await registry.tokens.get("f".repeat(64))).toBeUndefined();
      expect(await registry.tokens.get("e".repeat(64))).toBeUndefined();
      expect(await registry.settings.get(projectSettingsKey(stranger))).toBeUndefined();
      expect((await registry.settings.get(projectSettingsKey(projectId)))?.value.openRegistration).toBe(true);
    });
    expect(await registry.tokens.get(secretHash(projectId))).toEqual(untouched);
  });
});
