import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { test } from "./shared-system.ts";

let system: System;
let project: Project;
let stranger: Project;
const app = "com.example.match";
const type = "MatchAttributes";
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Matches");
  stranger = await system.project("Stranger of matches");
  // Two projects of one app, as two installations have it.
  for (const one of [project, stranger]) await system.putProvider(one, "apns", { bundle_id: app });
});
logOnFailure(() => system);

const put = (of: Project, id: string, targets: readonly string[], more: object = {}) => {
  const state = { attributes_type: type, attributes: {}, content_state: { n: 1 }, start: false, via: "channel" };
  return of.call(`PUT /activities/${id}`, { body: { activity: { ...state, targets, ...more } } });
};
const register = async (of: Project, more: object = {}) => {
  const { device, credential = "" } = await of.register(more);
  return { id: device.id as string, credential: credential as string };
};
const read = (device: string, activity: string, token: string) =>
  request(system.gateway, `GET /api/v1/devices/${device}/activities/${activity}`, { token });
const channelIds = async () => new Set((await system.simulators.channels(app)).map(({ id }) => id));

test("a foreign device or project learns no channel, and makes none", async ({ task }) => {
  const target = await register(project);
  const other = await register(project);
  const foreign = await register(stranger);
  expectStatus(await put(project, "match-1", [target.id]), 202);
  const before = await channelIds();
  const attempts: [string, Promise<{ status: number }>][] = [
    ["a device that is no target", read(other.id, "match-1", other.credential)],
    ["another device's name", read(target.id, "match-1", other.credential)],
    ["another project", read(target.id, "match-1", stranger.token)],
    ["a device of another project", read(foreign.id, "match-1", foreign.credential)],
    ["a guessed activity", read(target.id, "match-2", target.credential)],
  ];
  const wrong: string[] = [];
  for (const [who, attempt] of attempts) {
    const { status } = await attempt;
    if (status < 400 || status >= 500) wrong.push(`${who}: ${status}`);
  }
  expect([wrong, await channelIds()]).toEqual([[], before]);

  // The same id in another project has a channel of its own, also for the same app.
  const own = expectStatus(await read(target.id, "match-1", target.credential), 200).body.data.channel_id;
  expectStatus(await put(stranger, "match-1", [foreign.id]), 202);
  const theirs = expectStatus(await read(foreign.id, "match-1", foreign.credential), 200).body.data.channel_id;
  expect(new Set([own, theirs]).size).toBe(2);
  await system.simulators.startInstance(app, type, { channel: own, count: 1 });
  expectStatus(
    await stranger.call("PATCH /activities/match-1", { body: { activity: { content_state: { n: "x" } } } }),
    202,
  );
  expectStatus(
    await project.call("PATCH /activities/match-1", { body: { activity: { content_state: { n: 2 } } } }),
    202,
  );
  const card = await eventually(async () => {
    const found = (await system.simulators.instances()).find(({ channel }) => channel === own);
    expect(found?.shown.at(-1)?.contentState).toEqual({ n: 2 });
    return found;
  });
  expect(card?.arrived).toHaveLength(1);
  show(task, { attempts: attempts.length, foreign: 0 });
});

test("10,000 channels asked for are one, and no quota is used up twice", async ({ task }) => {
  const device = await register(project);
  expectStatus(await put(project, "match-3", [device.id]), 202);
  const before = await channelIds();
  const answers = await Promise.all(Array.from({ length: 200 }, () => read(device.id, "match-3", device.credential)));
  const given = new Set(answers.map((answer) => expectStatus(answer, 200).body.data.channel_id));
  given.delete(undefined);
  const made = [...(await channelIds())].filter((id) => !before.has(id));
  expect([...given]).toEqual(made);
  expect(made).toHaveLength(1);

  // Environments and apps that devices name: each has one, an app of nobody has none.
  for (const environment of ["sandbox", "production"]) {
    const named = await register(project, { environment });
    expectStatus(await put(project, `match-${environment}`, [named.id]), 202);
    for (let tries = 0; tries < 5; tries++) await read(named.id, `match-${environment}`, named.credential);
  }
  const nobody = await register(project, { app: "com.example.nobody" });
  expectStatus(await put(project, "match-nobody", [nobody.id]), 202);
  expect(expectStatus(await read(nobody.id, "match-nobody", nobody.credential), 200).body.data).not.toHaveProperty(
    "channel_id",
  );
  expect((await channelIds()).size).toBe(before.size + 3);

  // Another sender has used up Apple's 10,000.
  await system.simulators.makeChannels(app, 10_000 - (await channelIds()).size);
  const full = await channelIds();
  const ids = Array.from({ length: 30 }, (_, at) => `late-${at}`);
  for (const id of ids) expectStatus(await put(project, id, [device.id]), 202);
  const late = await Promise.all(ids.map((id) => read(device.id, id, device.credential)));
  expect(late.map((answer) => expectStatus(answer, 200).body.data.channel_id)).toEqual(ids.map(() => undefined));
  expect(await channelIds()).toEqual(full);
  const { data } = expectStatus(await project.call("GET /activities/late-0"), 200).body;
  expect(data.channels).toMatchObject([{ app, problem: "CannotCreateChannelConfig" }]);
  show(task, { asked: 200 + 10 + ids.length, made: 3 });
});

test("wrong fields are refused with their names", async () => {
  const { id, credential } = await register(project);
  for (const via of ["token", "", 1, true, ["channel"], "channel\r\nx: y"]) {
    const { errors } = expectStatus(await put(project, "match-4", [id], { via }), 422).body;
    expect(errors.join("\n"), JSON.stringify(via)).toContain("activity.via");
  }
  for (const channels of ["yes", 1, ["x"]]) {
    const body = { token: { token: "ab".repeat(32), channels } };
    const answer = await request(system.gateway, `PUT /api/v1/devices/${id}/tokens/liveactivity/${type}`, {
      token: credential,
      body,
    });
    expect(expectStatus(answer, 422).body.errors.join("\n")).toContain("token.channels");
  }
  const channels = { [`${app}/sandbox`]: { askedAt: 0, id: "A".repeat(24) } };
  expectStatus(await put(project, "match-4", [id], { channels }), 422);
  expectStatus(await project.call("GET /activities/match-4"), 404);
});
