import {
  NotificationPausedV1,
  NotificationResumedV1,
  newNotificationId,
  ProjectPausedV1,
  ProjectResumedV1,
} from "@herald/contracts";
import { eventually, expectStatus, type HttpAnswer, request } from "@herald/testing";
import { expect } from "vitest";
import { eventsOf } from "../harness/compare-events.ts";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

let system: System;
let project: Project;
let credential: string;
/** A notification that waits until tomorrow. */
let id: string;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Pauses");
  const registered = await project.register();
  credential = registered.credential;
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  ({ id } = await project.send({ title: "Tomorrow", targets: [registered.device.id], send_at: tomorrow }));
});
test.afterAll(async () => {
  expectStatus(await project.call(`DELETE /notifications/${id}`), 200, 202);
});
logOnFailure(() => system);

const verbs = ["pause", "resume"] as const;
const isPaused = async () => (await project.notification(id)).paused !== undefined;
const call = (route: string, token: string, headers: Record<string, string> = {}) =>
  request(system.gateway, route, { token, headers });

test("only those with rights to them pause and resume a notification, a project or all", async ({ task }) => {
  const other = await system.project("Strangers");
  const reader = (await newToken(system, project, ["read"])).token;
  const operatorOf = async (role: "viewer" | "operator", projectId: string) => {
    const projects = [{ id: projectId, role }];
    return (await system.operator({ name: "Stranger", role: "member", projects })).token;
  };
  const viewer = await operatorOf("viewer", project.id);
  const stranger = await operatorOf("operator", other.id);
  const own = { "herald-project": project.id };
  let refused = 0;
  const expectRefused = async (statuses: number[], ...args: Parameters<typeof call>) => {
    const { status, text } = await call(...args);
    expect(statuses, `${args[0]}: ${text}`).toContain(status);
    refused++;
  };
  // None of them may end this pause.
  expectStatus(await project.call(`POST /notifications/${id}/pause`), 200);
  for (const verb of verbs) {
    const route = `POST /api/v1/notifications/${id}/${verb}`;
    await expectRefused([404], route, other.token);
    await expectRefused([403], route, reader);
    await expectRefused([403], route, viewer, own);
    await expectRefused([403, 404], route, stranger, own);
    await expectRefused([401, 403], route, credential);
    await expectRefused([404], `POST /api/v1/notifications/${newNotificationId(new Date())}/${verb}`, project.token);
    for (const odd of ["x", "%00", "..", "ntf_", `${id}%2f`])
      await expectRefused([400, 404, 405, 422], `POST /api/v1/notifications/${odd}/${verb}`, project.token);
    for (const token of [project.token, credential]) {
      await expectRefused([401], `POST /admin/v1/projects/${project.id}/${verb}`, token);
      await expectRefused([401], `POST /admin/v1/${verb}`, token);
    }
    await expectRefused([403], `POST /admin/v1/projects/${project.id}/${verb}`, viewer);
    await expectRefused([403, 404], `POST /admin/v1/projects/${project.id}/${verb}`, stranger);
    await expectRefused([404], `POST /admin/v1/projects/installation/${verb}`, system.adminToken);
    for (const token of [viewer, stranger]) await expectRefused([403], `POST /admin/v1/${verb}`, token);
  }
  expect(await isPaused()).toBe(true);
  expect((await system.admin(`GET /projects/${project.id}`)).body.data.paused).toBeUndefined();
  expect((await system.admin("GET /installation")).body.data).toEqual({});
  expectStatus(await project.call(`POST /notifications/${id}/resume`), 200);
  show(task, { refused });
});

test("odd bodies are refused, and change nothing", async ({ task }) => {
  const reasons = ["x".repeat(201), "", "a\nb", "a\u0000b", "\u0085", 1, null, {}, ["x"]].map((reason) => ({ reason }));
  const ends = [
    "2020-01-31T10:00:00Z",
    "99999-01-31T10:00:00Z",
    "+099999-01-31T10:00:00Z",
    "9999-12-31T23:59:59-23:59",
  ];
  const noEnds = ["soon", "", "2999-01-31", "2999-01-31T10:00:00", "2999-02-30T10:00:00Z", 1e15, null, {}, []];
  const untils = [...ends, ...noEnds].map((until) => ({ until }));
  const unknown = [
    { reasons: "x" },
    { by: { id: "root", name: "root" } },
    { at: "2020-01-31T10:00:00Z" },
    { of: "all" },
  ];
  const shapes = [[], "x", 1, null, true];
  const ofNotification = [...reasons, ...unknown, ...shapes, { until: "2999-01-31T10:00:00Z" }];
  const ofSends = [...reasons, ...unknown, ...shapes, ...untils];
  let refused = 0;
  const expectRefused = async (path: string, token: string, body: unknown) => {
    const { status, text } = await request(system.gateway, `POST ${path}`, { token, body });
    expect([400, 415, 422], `${path} ${JSON.stringify(body)}: ${text}`).toContain(status);
    refused++;
  };
  for (const body of ofNotification) await expectRefused(`/api/v1/notifications/${id}/pause`, project.token, body);
  for (const body of ofSends)
    for (const path of [`/admin/v1/projects/${project.id}/pause`, "/admin/v1/pause"])
      await expectRefused(path, system.adminToken, body);
  expect(await isPaused()).toBe(false);
  expect((await system.admin(`GET /projects/${project.id}`)).body.data.paused).toBeUndefined();
  expect((await system.admin("GET /installation")).body.data).toEqual({});
  show(task, { refused });
});

test("a thousand pauses and resumes, 250 at a time, leave one state, and no more events than changes", async ({
  task,
}) => {
  const count = 1_000;
  const toAll = (send: (verb: (typeof verbs)[number]) => Promise<HttpAnswer>) =>
    // One address may have 500 connections.
    inParallel(Array.from({ length: count }), 250, (_, at) => send(at % 2 === 0 ? "pause" : "resume"));
  const projectPath = `/projects/${project.id}`;
  const figures: Record<string, string> = {};
  const kinds = [
    {
      name: "notification",
      send: (verb: string) => project.call(`POST /notifications/${id}/${verb}`),
      isPaused,
      events: [NotificationPausedV1, NotificationResumedV1],
    },
    {
      name: "project",
      send: (verb: string) => system.admin(`POST ${projectPath}/${verb}`),
      isPaused: async () => (await system.admin(`GET ${projectPath}`)).body.data.paused !== undefined,
      events: [ProjectPausedV1, ProjectResumedV1],
    },
  ] as const;
  for (const { name, send, isPaused: paused, events } of kinds) {
    const answers = await toAll(send);
    const statuses = Map.groupBy(answers, ({ status }) => status);
    // Herald may say that it is busy.
    expect([...statuses.keys()].filter((status) => status >= 500 && status !== 503)).toEqual([]);
    expect(statuses.get(200)?.length).toBeGreaterThan(0);
    const lengths = async () =>
      Promise.all(events.map(async (contract) => (await eventsOf<unknown>(system, project, contract)).length));
    // The events of all changes are published by the time of a later one.
    for (const verb of verbs) await eventually(async () => expectStatus(await send(verb), 200));
    expect(await paused()).toBe(false);
    await eventually(async () => {
      const [pauses = 0, resumes = 0] = await lengths();
      expect(pauses).toBe(resumes);
      expect(pauses).toBeGreaterThan(0);
      expect(pauses).toBeLessThanOrEqual(count / 2 + 2);
    });
    const answered = [...statuses].map(([status, all]) => `${all.length} × ${status}`).join(", ");
    figures[name] = `${answered}; ${(await lengths())[0]} pauses in fact`;
  }
  show(task, figures);
});
