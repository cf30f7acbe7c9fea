import { defineHandler, publish, schedule } from "@herald/bus";
import { DueV1, ExpandV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { backUpStreams, restoreStreams } from "../src/backup-streams.ts";
import { type BusTest, expandOf, newProject, readStream, startBusTest } from "./fixture.ts";

let from: BusTest;
let to: BusTest;
beforeAll(async () => {
  [from, to] = await Promise.all([startBusTest(), startBusTest()]);
});
afterAll(() => Promise.all([from.stop(), to.stop()]));

/** Half of the sizes that the other broker has. */
const sizeFactor = 0.005;
const keep = (replace: boolean) => ({ replace, replicas: 1 as const, sizeFactor });
const bodies = async (t: BusTest, stream: Parameters<typeof readStream>[1]) =>
  (await readStream(t, stream)).map(({ subject, data }) => ({ subject, data }));

test("a broker continues where another one was backed up: messages, buckets, positions of consumers and schedules", async () => {
  const handled: string[] = [];
  const record = defineHandler({
    durable: "registry-expand",
    message: ExpandV1,
    async handle({ data }) {
      handled.push(data.notificationId);
    },
  });
  const [done, waiting] = [expandOf(), expandOf()];
  await publish(from.bus, ExpandV1, done, { id: "done" });
  const consuming = await from.handle(record);
  await eventually(() => expect(handled).toEqual([done.notificationId]));
  await consuming.stop(2_000);
  await publish(from.bus, ExpandV1, waiting, { id: "waiting" });
  await jetstream(from.raw.nc).publish("$KV.push_tokens.abc", "a record");
  const due: DueV1 = { kind: "batch", projectId: newProject(), key: "batch-1", id: "a/0/1" };
  const at = new Date(Date.now() + 3_000);
  await schedule(from.bus, { subject: "push.sched.v1.batch-1.1", at, contract: DueV1, data: due, id: "due" });

  const count = await restoreStreams(to.bus, backUpStreams(from.bus), keep(false));
  expect(count).toBeGreaterThan(10);
  expect(await bodies(to, "PUSH_CMD")).toEqual(await bodies(from, "PUSH_CMD"));
  expect(await bodies(to, "PUSH_CMD")).toHaveLength(1);
  const value = await to.raw.jsm.streams.getMessage("KV_push_tokens", { last_by_subj: "$KV.push_tokens.abc" });
  expect(value?.string()).toBe("a record");

  const sizeOf = async ({ raw }: BusTest, name: string) => (await raw.jsm.streams.info(name)).config.max_bytes;
  for (const name of ["PUSH_CMD", "KV_push_tokens"])
    expect(await sizeOf(to, name), name).toBeCloseTo((await sizeOf(from, name)) / 2, -2);

  await expect(restoreStreams(to.bus, backUpStreams(from.bus), keep(false))).rejects.toThrow("restore with --replace");
  await restoreStreams(to.bus, backUpStreams(from.bus), keep(true));
  const fired: string[] = [];
  await to.handle(
    record,
    defineHandler({
      durable: "dispatch-due",
      message: DueV1,
      async handle({ data }) {
        fired.push(data.id);
      },
    }),
  );
  await eventually(() => expect(handled).toEqual([done.notificationId, waiting.notificationId]));
  await eventually(() => expect(fired).toEqual(["a/0/1"]));
});
