import {
  installation,
  kindRequests,
  newOperatorId,
  newProjectId,
  ProjectDeletedV1,
  type ProjectId,
  ProjectPausedV1,
  ProjectResumedV1,
  projectRequests,
  projectRulesKey,
} from "@herald/contracts";
import { createCounts } from "@herald/mongo";
import { eventually, readPublished } from "@herald/testing";
import type { Document } from "mongodb";
import { afterEach, describe, expect, test } from "vitest";
import type { Deps } from "../src/deps.ts";
import { endPauses } from "../src/jobs/end-pauses.ts";
import { createProjectReplication } from "../src/jobs/replicate.ts";
import { createPauseStore } from "../src/stores/pause-store.ts";
import { createProjectStore } from "../src/stores/project-store.ts";
import { failure, useRegistry } from "./registry-fixture.ts";

/** What the clock of registry is ahead of the machine's. */
let aheadMs = 0;
const now = () => new Date(Date.now() + aheadMs);
const registry = useRegistry({ overrides: { reconcileEveryMs: 300, removeEveryMs: 50, now } });

/** The record of all projects while they are not paused. */
const notPaused = { projectId: installation, kinds: [] };
const hourMs = 3_600_000;
const maria = { id: newOperatorId(new Date()), name: "Maria" };
const root = { id: "root", name: "root" } as const;
const reason = "a wrong link";
const inAnHour = () => new Date(now().getTime() + hourMs).toISOString();
const rows = () => registry.db.collection<Document & { _id: string }>("projects");
const pausedOf = async (id: ProjectId | typeof installation) =>
  (await registry.rules.get(projectRulesKey(id)))?.value.paused;
const get = async (projectId: ProjectId) => (await registry.ask(projectRequests.get, { projectId })).paused;
const pause = (
  projectId: ProjectId,
  more: { reason?: string; until?: string } = {},
  by: typeof maria | typeof root = maria,
) => registry.ask(projectRequests.pause, { projectId, by, ...more });
const resume = (projectId: ProjectId) => registry.ask(projectRequests.resume, { projectId, by: root });
/** The data of all events of this type in a project. */
const events = async (projectId: ProjectId, { filter }: typeof ProjectPausedV1 | typeof ProjectResumedV1) =>
  (await readPublished(registry.broker, filter.replace("*", projectId))).map(({ body }) => JSON.parse(body));

afterEach(async () => {
  await registry.ask(projectRequests.resumeAll, { by: root });
});

describe("a project", () => {
  test("is paused and resumed with an event each, replicated before the answers", async () => {
    const projectId = await registry.project();
    const until = inAnHour();
    const { paused, ...project } = await pause(projectId, { reason, until });
    expect(paused).toEqual({ at: expect.any(String), by: maria, reason, until, of: "project" });
    const { of: _, ...stored } = paused ?? {};
    expect((await registry.rules.get(projectRulesKey(projectId)))?.value).toEqual({
      projectId,
      kinds: [],
      paused: stored,
    });
    expect(await get(projectId)).toEqual(paused);
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, ProjectPausedV1)).toEqual({
        ...{ project_id: projectId, reason: "requested", detail: reason, by: maria, until },
        at: paused?.at,
      }),
    );

    expect(await resume(projectId)).toEqual(project);
    expect(await registry.rules.get(projectRulesKey(projectId))).toBeUndefined();
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, ProjectResumedV1)).toEqual({
        ...{ project_id: projectId, reason: "requested", by: root },
        at: expect.any(String),
      }),
    );
  });

  test("that is paused again has the new pause; a repeat of a pause or of a resume changes nothing", async () => {
    const projectId = await registry.project();
    const first = await pause(projectId, { reason });
    expect(await pause(projectId, { reason })).toEqual(first);
    const { paused } = await pause(projectId, {}, root);
    expect(paused).toEqual({ at: expect.any(String), by: root, of: "project" });
    const { of: _, ...stored } = paused ?? {};
    expect(await pausedOf(projectId)).toEqual(stored);
    const second = registry.newApp();
    await second.start();
    await Promise.all(Array.from({ length: 10 }, () => resume(projectId)));
    await second.stop();
    await resume(projectId);
    await eventually(async () => {
      expect((await events(projectId, ProjectPausedV1)).map(({ by }) => by)).toEqual([maria, root]);
      expect(await events(projectId, ProjectResumedV1)).toHaveLength(1);
      expect(await rows().findOne({ _id: projectId })).not.toHaveProperty("outbox");
    });
  });

  test("has one event of equal pauses at once, and one of resumes", async () => {
    const projectId = await registry.project();
    const twenty = Array.from({ length: 20 });
    await Promise.all(twenty.map(() => pause(projectId, { reason })));
    await Promise.all(twenty.map(() => resume(projectId)));
    await pause(projectId, { reason: "another" });
    await eventually(async () => {
      const paused = await events(projectId, ProjectPausedV1);
      expect(paused.map(({ detail }) => detail)).toEqual([reason, "another"]);
      expect(await events(projectId, ProjectResumedV1)).toHaveLength(1);
    });
  });

  test("keeps its rules beside a pause, and its pause beside a change", async () => {
    const projectId = await registry.project();
    const kind = { kind: "news", title: "News", on_by_default: true, critical: false };
    await registry.ask(kindRequests.put, { projectId, kind });
    await pause(projectId);
    await registry.ask(projectRequests.change, { projectId, defaultTimeZone: "Europe/Berlin" });
    const rules = { projectId, kinds: [kind], timeZone: "Europe/Berlin" };
    expect((await registry.rules.get(projectRulesKey(projectId)))?.value).toEqual({
      ...rules,
      paused: { at: expect.any(String), by: maria },
    });
    expect((await resume(projectId)).paused).toBeUndefined();
    expect((await registry.rules.get(projectRulesKey(projectId)))?.value).toEqual(rules);
  });

  test("resumes by itself, once, whichever process does it", async () => {
    const until = inAnHour();
    const ids = [await registry.project(), await registry.project(), await registry.project()];
    for (const id of ids) await pause(id, { until });
    const later = await registry.project();
    await pause(later, { until: new Date(now().getTime() + 24 * hourMs).toISOString() });
    const second = registry.newApp();
    await second.start();
    aheadMs += 2 * hourMs;
    await eventually(async () => {
      for (const id of ids) {
        expect(await get(id)).toBeUndefined();
        expect(await registry.rules.get(projectRulesKey(id))).toBeUndefined();
        expect(await rows().findOne({ _id: id })).not.toHaveProperty("outbox");
      }
    });
    await second.stop();
    for (const id of ids)
      expect(await events(id, ProjectResumedV1)).toEqual([{ project_id: id, reason: "until", at: expect.any(String) }]);
    expect(await get(later)).toBeDefined();
    expect(await events(later, ProjectResumedV1)).toEqual([]);
  });

  test("resumes by itself for dispatch too while another process, whose clock is late, still sees the pause", async () => {
    const projectId = await registry.project();
    await pause(projectId, { until: inAnHour() });
    const later = () => new Date(now().getTime() + 2 * hourMs);
    const { db, rules, settings, tokens } = registry;
    const projects = createProjectStore(db, createCounts(), later);
    const pauses = createPauseStore(db);
    const kind = { kind: "news", title: "News", on_by_default: true, critical: false };
    const end: typeof pauses.end = async (context) => {
      // Replicated by the other process.
      await registry.ask(kindRequests.put, { projectId, kind });
      expect(await pausedOf(projectId)).toBeDefined();
      await pauses.end(context);
    };
    const replication = createProjectReplication({ projects, tokens, settings, rules, now: later });
    const publishSoon = { project: () => {} } as unknown as Deps["publishSoon"];
    await endPauses({ pauses: { ...pauses, end }, replication, publishSoon, now: later });
    expect((await rules.get(projectRulesKey(projectId)))?.value).toEqual({ projectId, kinds: [kind] });
  });

  test("is not paused until a time that has passed, and only if it exists", async () => {
    const projectId = await registry.project();
    const past = new Date(now().getTime() - 1).toISOString();
    for (const until of [past, "9999-12-31T23:59:59-23:59"]) {
      const refused = {
        code: "validation-failed",
        messages: ["until: must be in the future, and before the year 10000"],
      };
      expect(await failure(pause(projectId, { until }))).toEqual(refused);
      expect(await failure(registry.ask(projectRequests.pauseAll, { by: root, until }))).toEqual(refused);
    }
    expect(await get(projectId)).toBeUndefined();
    const unknown = newProjectId(new Date());
    for (const failed of [pause(unknown), resume(unknown)])
      expect(await failure(failed)).toMatchObject({ code: "project-not-found" });
  });

  test("that is deleted while it is paused leaves nothing behind", async () => {
    const projectId = await registry.project();
    await pause(projectId, { until: inAnHour() });
    await registry.ask(projectRequests.delete, { projectId });
    expect(await registry.rules.get(projectRulesKey(projectId))).toBeUndefined();
    expect(await failure(pause(projectId))).toMatchObject({ code: "project-not-found" });
    aheadMs += 2 * hourMs;
    await eventually(async () => {
      expect(await registry.lastEvent(projectId, ProjectDeletedV1)).toBeDefined();
      expect(await rows().findOne({ _id: projectId })).toBeNull();
    });
    expect(await events(projectId, ProjectResumedV1)).toEqual([]);
  });
});

describe("all projects", () => {
  const pauseAll = (more: { reason?: string; until?: string } = {}) =>
    registry.ask(projectRequests.pauseAll, { by: root, ...more });
  const read = () => registry.ask(projectRequests.installation, {});

  test("are paused together; a project shows its own pause before", async () => {
    const [own, other] = [await registry.project(), await registry.project()];
    await pause(own, { reason });
    expect(await read()).toEqual({});
    const { paused } = await pauseAll({ reason: "an attack" });
    expect(paused).toEqual({ at: expect.any(String), by: root, reason: "an attack", of: "installation" });
    expect(await pauseAll({ reason: "an attack" })).toEqual({ paused });
    expect(await read()).toEqual({ paused });
    const { of: _, ...stored } = paused ?? {};
    expect((await registry.rules.get(projectRulesKey(installation)))?.value).toEqual({
      projectId: installation,
      kinds: [],
      paused: stored,
    });
    expect(await get(own)).toMatchObject({ reason, of: "project" });
    expect(await get(other)).toEqual(paused);
    expect((await resume(own)).paused).toEqual(paused);
    const made = { projectId: newProjectId(new Date()), name: "New", openRegistration: true };
    expect((await registry.ask(projectRequests.create, made)).project.paused).toEqual(paused);

    expect(await registry.ask(projectRequests.resumeAll, { by: maria })).toEqual({});
    expect(await registry.ask(projectRequests.resumeAll, { by: maria })).toEqual({});
    expect(await registry.rules.get(projectRulesKey(installation))).toMatchObject({ value: notPaused });
    expect(await get(other)).toBeUndefined();
  });

  test("are no project of a list, a count or a page by key", async () => {
    const id = await registry.project();
    const page = { by: "page" as const, page: 1, perPage: 100 };
    const before = await registry.ask(projectRequests.list, { page });
    const { paused } = await pauseAll();
    const after = await registry.ask(projectRequests.list, { page });
    expect(after).toMatchObject({ pagination: { count: before.data.length } });
    expect(after.data).toEqual(before.data.map((project) => ({ paused, ...project })));
    const first = await registry.ask(projectRequests.list, { page: { by: "key", after: "", perPage: 1 } });
    expect(first.data.map((project) => project.id)).toEqual([before.data[0]?.id]);
    expect((await registry.ask(projectRequests.list, { page, only: [id] })).data).toMatchObject([{ id }]);
  });

  test("resume by themselves", async () => {
    const second = registry.newApp();
    await second.start();
    await pauseAll({ until: inAnHour() });
    expect((await rows().findOne({ _id: installation }))?.paused).toBeDefined();
    aheadMs += 2 * hourMs;
    await eventually(async () => {
      expect(await read()).toEqual({});
      expect(await registry.rules.get(projectRulesKey(installation))).toMatchObject({ value: notPaused });
      expect(await rows().findOne({ _id: installation })).toBeNull();
    });
    await second.stop();
  });
});

describe("what a crash or a loss of the broker's data left", () => {
  test("all projects' record comes after those of the others, also if they are paused and resumed in between", async () => {
    const projectId = await registry.project();
    await pause(projectId);
    const written: string[] = [];
    const watching = registry.rules.watch(({ key, value }) => void (value && written.push(key)), undefined, {
      keys: "*.rules",
    });
    await eventually(() => expect(written).toContain(projectRulesKey(installation)));
    for (const id of [projectId, installation] as const) await registry.rules.delete(projectRulesKey(id));
    written.length = 0;
    await registry.ask(projectRequests.pauseAll, { by: root });
    await registry.ask(projectRequests.resumeAll, { by: root });
    await eventually(() => expect(written).toContain(projectRulesKey(installation)));
    await watching.stop();
    expect(written.indexOf(projectRulesKey(projectId))).toBeGreaterThanOrEqual(0);
    expect(written.indexOf(projectRulesKey(projectId))).toBeLessThan(written.indexOf(projectRulesKey(installation)));
  });

  test("a pause whose record is missing gets it again, and one that ended loses it", async () => {
    const projectId = await registry.project();
    await pause(projectId);
    await registry.ask(projectRequests.pauseAll, { by: root });
    const [own, all] = [await pausedOf(projectId), await pausedOf(installation)];
    for (const id of [projectId, installation] as const) await registry.rules.delete(projectRulesKey(id));
    await eventually(async () => {
      expect(await pausedOf(projectId)).toEqual(own);
      expect(await pausedOf(installation)).toEqual(all);
    });
    await rows().updateOne({ _id: projectId }, { $unset: { paused: 1 } });
    await rows().deleteOne({ _id: installation });
    await eventually(async () => {
      expect(await registry.rules.get(projectRulesKey(projectId))).toBeUndefined();
      expect(await registry.rules.get(projectRulesKey(installation))).toMatchObject({ value: notPaused });
    });
    // Neither settings nor tokens were made of the row.
    expect(await registry.settings.get(`${installation}.settings`)).toBeUndefined();
  });
});
