import { Herald, type NotificationListOptions } from "@herald/client";
import { eventually, readPublished, request } from "@herald/testing";
import { describe, expect } from "vitest";
import type { Content, Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project();
});
logOnFailure(() => system);

const tagged = { kind: "promotion", labels: { campaign: "spring/1", team: "growth" } };
const noReceipts = { skipped: 0, received: 0, dismissed: 0, receipts_asked: 0 };

/** Opens a notification on its devices, as soon as the pushes arrive. */
const openAll = async (id: string, devices: number) => {
  const pushes = await eventually(async () => {
    const found = (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id);
    expect(new Set(found.map(deviceOf)).size).toBe(devices);
    return found;
  });
  for (const push of pushes) {
    expect(JSON.stringify(payloadOf(push))).not.toMatch(/promotion|spring|growth/);
    const body = { project_id: project.id, token: payloadOf(push).token };
    expect((await request(`${system.gateway}/api/v1`, `PUT /notifications/${id}/open`, { body })).status).toBe(204);
  }
};

const stats = async (query: string) => (await project.call(`GET /stats?${query}`)).body.data;

describe("a notification with a kind and labels", () => {
  test("is counted by both, small or large, even if opens arrive before its events", async () => {
    const [one, two] = [await project.register(), await project.register({ topics: ["labelled"] })];
    const sends: [Content, number][] = [
      [{ title: "One", targets: [one.device.id, two.device.id], ...tagged }, 2],
      [{ title: "Topic", targets: ["topic:labelled"], ...tagged, labels: { campaign: "fall" } }, 1],
      [{ title: "Plain", targets: [one.device.id] }, 1],
    ];
    const ids: string[] = [];
    for (const [content, devices] of sends) {
      const { id, kind, labels } = await project.send(content);
      expect({ kind, labels }).toEqual({ kind: content.kind, labels: content.labels });
      ids.push(id);
      await openAll(id, devices);
    }
    const [small = "", large = ""] = ids;
    expect(await project.final(small)).toMatchObject(tagged);
    expect(await project.final(large)).toMatchObject({ kind: "promotion", labels: { campaign: "fall" } });

    await eventually(async () => {
      const { groups, totals } = await stats("by=label:campaign");
      expect(groups).toEqual([
        { value: "spring/1", sent: 2, failed: 0, opened: 2, open_rate: 1, ...noReceipts },
        { value: "fall", sent: 1, failed: 0, opened: 1, open_rate: 1, ...noReceipts },
      ]);
      expect(totals).toMatchObject({ sent: 4, opened: 4 });
      // Each is written by itself, so one may be complete before another.
      expect((await stats("by=kind&platform=ios")).groups).toMatchObject([{ value: "promotion", sent: 3, opened: 3 }]);
      expect((await stats("label=team:growth")).totals).toMatchObject({ sent: 2, opened: 2 });
      expect((await stats("kind=promotion&by=platform")).groups).toMatchObject([{ value: "ios", sent: 3, opened: 3 }]);
      expect((await stats("by=topic")).groups).toMatchObject([{ value: "labelled", sent: 1, opened: 1 }]);
    });

    const herald = new Herald({ url: system.gateway, token: project.token });
    const listed = async (filter: NotificationListOptions) => {
      const found: string[] = [];
      for await (const { id } of herald.notifications.list(filter)) found.push(id);
      return found;
    };
    expect(await listed({ kind: "promotion" })).toEqual([small, large]);
    expect(await listed({ label: "campaign:spring/1", kind: "promotion", status: "completed" })).toEqual([small]);
    expect(await listed({ label: "campaign:spring" })).toEqual([]);

    const { events, mine } = await eventually(async () => {
      const events = await readPublished(system.broker, `push.evt.v1.${project.id}.>`);
      const mine = events.filter(({ body }) => body.includes(small));
      expect(mine.map(({ subject }) => subject.split(".").slice(4).join(".")).toSorted()).toEqual([
        "delivery.accepted",
        "notification.accepted",
        "notification.completed",
        "notification.opened",
        "notification.opened",
      ]);
      return { events, mine };
    });
    for (const { body } of mine) expect(JSON.parse(body)).toMatchObject(tagged);
    for (const { body } of events.filter(({ body }) => body.includes(ids[2] ?? "none")))
      expect(JSON.parse(body)).not.toHaveProperty("labels");
  });

  test("is refused with what would be accepted, also in a batch and in a dry run", async () => {
    const bad = { title: "Bad", targets: ["all"], kind: "Order Shipped", labels: { Campaign: "x", team: "" } };
    for (const notification of [bad, { ...bad, dry_run: true }]) {
      const { status, body } = await project.call("POST /notifications", { body: { notification } });
      expect(status).toBe(422);
      for (const field of ["kind: must be a slug", "labels.Campaign", "labels.team: may not be empty"])
        expect(body.errors.join("\n")).toContain(`notification.${field}`);
      expect(body.errors).toHaveLength(3);
    }
    const good = { title: "Good", targets: ["topic:none"], ...tagged };
    const batch = await project.call("POST /notifications/batch", { body: { notifications: [good, bad] } });
    expect(batch.status).toBe(202);
    expect(batch.body.data[1].errors).toHaveLength(3);
    expect(await project.final(batch.body.data[0].id)).toMatchObject(tagged);
    const dry = await project.call("POST /notifications", { body: { notification: { ...good, dry_run: true } } });
    expect(dry.status).toBe(200);
  });
});
