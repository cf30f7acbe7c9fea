import { randomUUID } from "node:crypto";
import { type Consuming, consume, defineHandler, publish } from "@herald/bus";
import { newDeviceId, newNotificationId, OpenGroupV1, type ProjectId, type Replay, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { writeDeadLetter } from "./write-dead-letter.ts";

export const sendOf = (projectId: ProjectId): SendV1 => ({
  projectId,
  notificationId: newNotificationId(new Date()),
  content: { title: "Hello", targets: ["all"] },
  acceptedAt: new Date().toISOString(),
  expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
});
export const opensOf = (projectId: ProjectId): OpenGroupV1 => ({
  projectId,
  opens: [
    {
      notificationId: newNotificationId(new Date()),
      deviceId: newDeviceId(new Date()),
      openedAt: new Date().toISOString(),
    },
  ],
});

export const statuses = (replays: readonly Replay[]) => replays.map(({ id, status }) => [id, status]);

/** A gateway for the tests of a file, with its dead letters, and the sends and opens that `work` handles. */
export function useDeadLetters() {
  let system: GatewayTest;
  let project: TestProject;
  const handled: SendV1[] = [];
  const opened: OpenGroupV1[] = [];
  let consuming: Consuming | undefined;
  beforeAll(async () => {
    system = await startGatewayTest();
    project = await system.project();
  });
  afterEach(async () => {
    await consuming?.stop(2_000);
    consuming = undefined;
    system.peers.settled.clear();
    system.peers.back();
  });
  afterAll(() => system.stop());

  /** Handles sends and opens, with the given contract of sends. */
  const work = async (sends: typeof SendV1 = SendV1) => {
    await consuming?.stop(2_000);
    handled.length = 0;
    opened.length = 0;
    const started = await consume(system.bus, [
      defineHandler({ durable: "dispatch-start", message: sends, handle: async ({ data }) => void handled.push(data) }),
      defineHandler({
        durable: "analytics-open-groups",
        message: OpenGroupV1,
        handle: async ({ data }) => void opened.push(data),
      }),
    ]);
    consuming = started;
    await eventually(() => expect(started.ready()).toBe(true));
    // Tests without a handler leave their replays in the queue.
    const marker = opensOf(project.id);
    await publish(system.bus, OpenGroupV1, marker, { id: randomUUID() });
    await eventually(() => expect(opened).toContainEqual(marker));
    handled.length = 0;
    opened.length = 0;
  };

  const admin = (route: string, body?: unknown, headers: Record<string, string> = {}) =>
    system.call(route.replace(" ", " /admin/v1/dead-letters"), { token: adminToken, body, headers });
  const replay = (id: string, headers?: Record<string, string>) => admin(`POST /${id}/replay`, undefined, headers);
  const replayAll = async (ids: readonly string[]) => admin("POST /replay", { dead_letters: ids });

  const deadSend = (send = sendOf(project.id)) => writeDeadLetter(system.bus, "dispatch-start", SendV1, send);
  const deadOpens = (opens = opensOf(project.id)) =>
    writeDeadLetter(system.bus, "analytics-open-groups", OpenGroupV1, opens);

  return {
    system: () => system,
    project: () => project,
    handled,
    opened,
    work,
    admin,
    replay,
    replayAll,
    deadSend,
    deadOpens,
  };
}
