import { defineBatchHandler, publish } from "@herald/bus";
import { newDeviceId, newNotificationId, OpenGroupV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, messagesIn, newProject, readStream, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const allSettled = () => eventually(async () => expect(await messagesIn(t, "PUSH_OPENS")).toBe(0));

describe("a batch", () => {
  const open = (projectId = newProject()) => ({
    projectId,
    opens: [
      {
        notificationId: newNotificationId(new Date()),
        deviceId: newDeviceId(new Date()),
        openedAt: new Date().toISOString(),
      },
    ],
  });
  const publishOpens = async (count: number) => {
    const all = Array.from({ length: count }, () => open());
    await Promise.all(all.map((data) => publish(t.bus, OpenGroupV1, data, { id: crypto.randomUUID() })));
    return all;
  };
  type Handle = Parameters<typeof defineBatchHandler<typeof OpenGroupV1.schema>>[0]["handle"];
  const onOpens = (handle: Handle, size = 50, waitMs = 50) =>
    defineBatchHandler({ durable: "analytics-open-groups", message: OpenGroupV1, size, waitMs, handle });

  test("contains up to `size` messages, fewer after `waitMs`", async () => {
    const sizes: number[] = [];
    const published = await publishOpens(120);
    // Long enough for a busy broker to deliver 50.
    await t.handle(
      onOpens(
        async (deliveries) => {
          sizes.push(deliveries.length);
        },
        50,
        1_000,
      ),
    );
    await allSettled();
    expect(Math.max(...sizes)).toBe(50);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(published.length);
    await publishOpens(1);
    await allSettled();
    expect(sizes.at(-1)).toBe(1);
  });

  test("settles each message alone: a bad one fails no other", async () => {
    const [bad, ...good] = await publishOpens(30);
    await jetstream(t.raw.nc).publish(OpenGroupV1.subject(open()), "}");
    const stored = new Set<string>();
    await t.handle(
      onOpens(async (deliveries) => {
        const ids = deliveries.map(({ data }) => data.projectId);
        if (ids.includes(bad?.projectId as never)) throw new HeraldError("project-not-found", "gone");
        for (const id of ids) stored.add(id);
      }),
    );
    await allSettled();
    expect(stored).toEqual(new Set(good.map(({ projectId }) => projectId)));
    const letters = await readStream(t, "PUSH_DLQ");
    expect(letters.map(({ header }) => header.get("Herald-Dead-Reason")).toSorted()).toEqual([
      "project-not-found",
      "schema",
    ]);
  });

  test("dead-letters each malformed message for its own reason and handles the valid ones", async () => {
    const subject = OpenGroupV1.subject(open());
    const js = jetstream(t.raw.nc);
    const good = new Set<string>();
    const strays = Array.from({ length: 60 }, (_, index) => `{"stray":${index}}`);
    for (const [index, stray] of strays.entries()) {
      await js.publish(subject, stray);
      await js.publish(subject, "}");
      if (index % 20 !== 0) continue;
      const data = open();
      good.add(data.projectId);
      await publish(t.bus, OpenGroupV1, data, { id: crypto.randomUUID() });
    }
    const stored: string[] = [];
    await t.handle(
      onOpens(async (deliveries) => {
        stored.push(...deliveries.map(({ data }) => data.projectId));
      }, 25),
    );
    await allSettled();
    expect(stored.toSorted()).toEqual([...good].toSorted());
    const letters = await readStream(t, "PUSH_DLQ");
    const bodies = letters.map(({ data }) => new TextDecoder().decode(data));
    expect(bodies.toSorted()).toEqual([...strays, ...strays.map(() => "}")].toSorted());
    for (const [index, { header }] of letters.entries())
      expect(header.get("Herald-Dead-Detail")).toContain(bodies[index] === "}" ? "not JSON" : "projectId:");
  });

  test("is blocked as a whole while a dependency is unavailable", async () => {
    let unavailable = true;
    const sizes: number[] = [];
    const published = await publishOpens(40);
    await t.handle(
      onOpens(async (deliveries) => {
        if (unavailable) throw new HeraldError("database-unavailable", "unavailable");
        sizes.push(deliveries.length);
      }, 100),
    );
    await eventually(async () =>
      expect((await t.raw.jsm.consumers.info("PUSH_OPENS", "analytics-open-groups")).num_ack_pending).toBe(40),
    );
    unavailable = false;
    await allSettled();
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(published.length);
  });
});
