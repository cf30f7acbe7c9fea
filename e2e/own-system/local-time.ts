import { readFile } from "node:fs/promises";
import { eventually, expectStatus } from "@herald/testing";
import { beforeAll, expect, test } from "vitest";
import type { MovableClock } from "../harness/movable-clock.ts";
import { apnsToken, type Project } from "../harness/project.ts";
import { deviceOf, payloadOf } from "../harness/simulators.ts";
import type { System } from "../harness/system.ts";
import type { OwnSystem } from "./own-system.ts";

/** The night of next year in which Europe's clocks go forward: the last Sunday of March. */
const springNight = (): Date => {
  const last = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 2, 31));
  return new Date(last.getTime() - last.getUTCDay() * 86_400_000);
};
const hour = 3_600_000;
const minute = 60_000;
const night = springNight();
const day = night.toISOString().slice(0, 10);
const at = (hours: number): Date => new Date(night.getTime() + hours * hour);

/** Moves the clock to next year, so what comes after it has that time too. */
export function testLocalTime(own: () => OwnSystem): void {
  let clock: MovableClock;
  let system: System;
  let project: Project;
  beforeAll(async () => {
    ({ clock, system } = own());
    clock.set(at(-24));
    project = await system.project("Local time");
    const change = { project: { default_time_zone: "America/New_York" } };
    expectStatus(await system.admin(`PATCH /projects/${project.id}`, { body: change }), 200);
  });

  const inZone = async (zone?: string) => {
    const identifiers = zone === undefined ? {} : { identifiers: { current_time_zone: zone } };
    return (await project.register({ topics: ["news"], ...identifiers })).device.id;
  };

  /** The devices that got a notification. */
  const reached = async (id: string) => {
    const pushes = (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id);
    return pushes.map(deviceOf);
  };

  const reaches = (id: string, devices: readonly string[]) =>
    eventually(async () => expect((await reached(id)).sort()).toEqual([...devices].sort()), { timeoutMs: 30_000 });

  const scheduleOf = async (id: string) =>
    (await project.notification(id)).schedule?.map(({ at: time, status, devices }) => [time, status, devices]);

  test("each device gets it when its clock shows the time, also in the night when clocks change", async () => {
    const tokyo = await inZone("Asia/Tokyo");
    const berlin = await inZone("Europe/Berlin");
    const none = await inZone();
    const content = {
      title: "Night",
      targets: ["topic:news"],
      send_at: `${day}T02:30:00`,
      time_zone: "device",
      ttl: 7200,
    };
    // Clocks in Berlin go from 02:00 to 03:00 that night.
    const times = [at(-6.5), at(1), at(6.5)].map((time) => time.toISOString());
    const dry = await project.call("POST /notifications", { body: { notification: { ...content, dry_run: true } } });
    expect(dry.body.data).toMatchObject({
      devices: { total: 3 },
      schedule: times.map((time) => ({ at: time, devices: 1 })),
    });

    const { id, status } = await project.send(content);
    expect(status).toBe("scheduled");
    await eventually(async () =>
      expect(await scheduleOf(id)).toEqual(times.map((time) => [time, "scheduled", undefined])),
    );
    clock.set(new Date(at(-6.5).getTime() + minute));
    await reaches(id, [tokyo]);
    await eventually(async () =>
      expect(await scheduleOf(id)).toEqual([
        [times[0], "sent", 1],
        [times[1], "scheduled", undefined],
        [times[2], "scheduled", undefined],
      ]),
    );
    await eventually(async () =>
      expect(await project.notification(id)).toMatchObject({ status: "sending", counts: { devices: 1, accepted: 1 } }),
    );
    const trace = await project.call(`GET /notifications/${id}/devices/${berlin}`);
    expect(trace.body.data).toMatchObject({ status: "pending", attempts: [] });
    expect(trace.body.data.explanation.join(" ")).toContain(`at ${times[1]}, when its time zone's wave begins`);

    // It registers before its wave begins, in a zone that no device had.
    const late = await inZone("Africa/Lagos");
    clock.set(new Date(at(1).getTime() + minute));
    await reaches(id, [tokyo, berlin]);
    clock.set(new Date(at(1.5).getTime() + minute));
    await reaches(id, [tokyo, berlin, late]);
    clock.set(new Date(at(6.5).getTime() + minute));
    const final = await project.final(id);
    expect(final).toMatchObject({ status: "completed", counts: { devices: 4, accepted: 4 } });
    expect((await reached(id)).sort()).toEqual([tokyo, berlin, late, none].sort());
  });

  test("devices whose clocks have passed the time are skipped, with a reason everywhere", async () => {
    clock.set(at(8));
    const tokyo = await inZone("Asia/Tokyo");
    const lagos = await inZone("Africa/Lagos");
    const content = {
      title: "Late",
      targets: [`device:${tokyo}`, `device:${lagos}`],
      send_at: `${day}T10:00:00`,
      time_zone: "device",
      past: "skip" as const,
    };
    const dry = await project.call("POST /notifications", { body: { notification: { ...content, dry_run: true } } });
    expect(dry.body.data).toMatchObject({ skips: { "past-local-time": 1 }, delayed: [], evaluated_later: [] });
    const { id } = await project.send(content);
    clock.set(new Date(at(9).getTime() + minute));
    const final = await project.final(id);
    expect(final).toMatchObject({ counts: { accepted: 1, skipped: 1 }, skips: { "past-local-time": 1 } });
    expect(await reached(id)).toEqual([lagos]);
    const trace = await project.call(`GET /notifications/${id}/devices/${tokyo}`);
    expect(trace.body.data).toMatchObject({ status: "skipped" });
    expect(trace.body.data.explanation.join(" ")).toContain("local time");
  });

  test("the guide's notification arrives in the morning of each device", async () => {
    clock.set(at(-24));
    const guide = await readFile(new URL("../../docs/how-to/send-at-local-time.md", import.meta.url), "utf8");
    const blocks = [...guide.matchAll(/^```json\n(.*?)^```/gms)].map(([, json = ""]) =>
      JSON.parse(json.replaceAll("2030-03-31", day)),
    );
    const [registration, send, change] = blocks;
    const [tokyo, berlin] = [
      await project.register({ ...registration.device, token: apnsToken(), topics: ["morning"] }),
      await inZone("Europe/Berlin"),
    ];
    const targets = ["topic:morning", `device:${berlin}`];
    const { id } = await project.send({ ...send.notification, targets });
    expectStatus(await project.call(`PATCH /notifications/${id}`, { body: change }), 200);
    clock.set(new Date(at(1).getTime() + minute));
    await reaches(id, [tokyo.device.id]);
    // In summer time.
    clock.set(new Date(at(8).getTime() + minute));
    await reaches(id, [tokyo.device.id, berlin]);
    // The project has devices in New York, too, though none of this topic: its wave is the last one.
    clock.set(new Date(at(14).getTime() + minute));
    expect(await project.final(id)).toMatchObject({ counts: { devices: 2, accepted: 2 } });
  });

  test("its time can be changed until its first wave begins", async () => {
    clock.set(at(10));
    const devices = [await inZone("Asia/Tokyo"), await inZone("Europe/Berlin")];
    const { id } = await project.send({
      title: "Changed",
      targets: devices.map((device) => `device:${device}`),
      send_at: `${day}T22:00:00`,
      time_zone: "device",
      past: "now",
    });
    const change = (notification: object) => project.call(`PATCH /notifications/${id}`, { body: { notification } });
    const later = expectStatus(await change({ send_at: `${day}T23:00:00`, ttl: 600 }), 200).body.data;
    expect(later).toMatchObject({ status: "scheduled", send_at: `${day}T23:00:00`, ttl: 600, past: "now" });
    expect(later.schedule).toHaveLength(2);
    clock.set(new Date(at(13).getTime() + minute));
    await eventually(async () => expect((await project.notification(id)).status).toBe("scheduled"));
    clock.set(new Date(at(14).getTime() + minute));
    await reaches(id, devices.slice(0, 1));
    const late = await change({ send_at: `${day}T23:30:00` });
    expect([late.status, late.body.type]).toEqual([409, expect.stringContaining("notification-started")]);
    expectStatus(await project.call(`DELETE /notifications/${id}`), 200);
    expect(await project.final(id)).toMatchObject({ status: "cancelled", counts: { devices: 1, accepted: 1 } });
    expectStatus(await change({ ttl: 5 }), 409);
  });

  test.each([
    ["an unknown zone", { send_at: `${day}T09:00:00`, time_zone: "Mars/Olympus" }, "time_zone"],
    ["a name of the language", { send_at: `${day}T09:00:00`, time_zone: "__proto__" }, "time_zone"],
    ["offset and zone", { send_at: `${day}T09:00:00Z`, time_zone: "device" }, "send_at"],
    ["neither", { send_at: `${day}T09:00:00` }, "send_at"],
    ["a time that has passed somewhere", { send_at: `${day}T09:00:00`, time_zone: "device" }, "past"],
    ["a day that does not exist", { send_at: `${day.slice(0, 4)}-02-30T09:00:00`, time_zone: "device" }, "send_at"],
    ["past in a named zone", { send_at: `${day}T09:00:00`, time_zone: "Asia/Tokyo", past: "now" }, "past"],
  ])("refuses %s", async (_name, time, field) => {
    const body = { notification: { title: "x", targets: ["all"], ...time } };
    const { status, body: problem } = await project.call("POST /notifications", { body });
    expect(status).toBe(422);
    expect(problem.errors.join(" ")).toContain(`notification.${field}: `);
  });

  test("a named zone is one instant", async () => {
    clock.set(at(12));
    const device = await inZone("Asia/Tokyo");
    const { id } = await project.send({
      title: "Zone",
      targets: [`device:${device}`],
      send_at: `${day}T16:00:00`,
      time_zone: "europe/berlin",
    });
    await eventually(async () => expect((await project.notification(id)).status).toBe("scheduled"));
    expect(await reached(id)).toEqual([]);
    clock.set(new Date(at(14).getTime() + minute));
    expect(await project.final(id)).toMatchObject({ counts: { accepted: 1 }, send_at: `${day}T16:00:00` });
  });
}
