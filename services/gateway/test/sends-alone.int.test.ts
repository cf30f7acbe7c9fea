import { consume, defineHandler } from "@herald/bus";
import { newNotificationId, readGroup, SendGroupV1, SendOneV1, type SendV1 } from "@herald/contracts";
import { hasCode } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewRecord } from "../src/idempotency/key-records.ts";
import { parsedSend } from "../src/sending/accept-notification.ts";
import { createSendCommands } from "../src/sending/send-commands.ts";
import { type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
const published: SendV1[] = [];
const logged: object[] = [];
const released: string[] = [];
let commands: ReturnType<typeof createSendCommands>;
let stop: () => Promise<void>;

beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
  const records = {
    create: async (all: readonly NewRecord[]) => all.map(() => true),
    release: async ({ request }: NewRecord) => void released.push(request.place),
    setPerformed: () => {},
  };
  commands = createSendCommands(() => system.bus, records, { error: (facts: object) => void logged.push(facts) });
  const consuming = await consume(system.bus, [
    defineHandler({
      durable: "dispatch-send-groups",
      message: SendGroupV1,
      handle: async ({ data }) => void published.push(...readGroup(data).sends),
    }),
    defineHandler({
      durable: "dispatch-single-sends",
      message: SendOneV1,
      handle: async ({ data }) => void published.push(data),
    }),
  ]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  stop = () => consuming.stop(2_000);
});
afterAll(async () => {
  await stop();
  await system.stop();
});

const personal = { texts: "{}", locale: "en", values: {} };

const send = (title: unknown): SendV1 => {
  const at = new Date();
  return {
    projectId: project.id,
    notificationId: newNotificationId(at),
    content: { title: title as string, targets: ["token:x"] },
    acceptedAt: at.toISOString(),
    expiresAt: new Date(at.getTime() + 60_000).toISOString(),
  };
};

describe("a send that cannot be sent", () => {
  test("is an internal error before it joins a group, and the log names its project", () => {
    let error: unknown;
    try {
      commands.check(parsedSend({ ...send(undefined), personal }));
      commands.check(parsedSend({ ...send(5), personal }));
    } catch (thrown) {
      error = thrown;
    }
    expect(hasCode(error, "internal")).toBe(true);
    expect(logged).toEqual([{ projectId: project.id, problems: ["content.title: must be a string"] }]);
  });

  test("has no JSON before it joins a group", () => {
    expect(() => parsedSend(send(10n))).toThrow(TypeError);
  });

  test("fails alone when its group is too large for the broker, its key is free again, and the others are published", async () => {
    const keyOf = (title: string) => ({
      request: { place: `key of ${title.slice(0, 5)}`, owner: project.id, body: "" },
      at: new Date(),
    });
    const accept = (title: string) => commands.accept([{ ...parsedSend(send(title)), bytes: 300 }], keyOf(title));
    const outcomes = await Promise.allSettled(["one", "x".repeat(1_100_000), "two", "three"].map(accept));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(released).toEqual(["key of xxxxx"]);
    const ids = outcomes.flatMap((one) => (one.status === "fulfilled" ? (one.value ?? []) : []));
    await eventually(() => {
      const own = published.filter(({ content }) => ["one", "two", "three"].includes(content.title ?? ""));
      expect(own.map(({ notificationId }) => notificationId).sort()).toEqual(ids.sort());
    });
  });
});
