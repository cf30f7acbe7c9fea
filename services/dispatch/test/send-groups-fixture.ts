import { publish } from "@herald/bus";
import {
  type GroupedSend,
  type NotificationId,
  newNotificationIds,
  type ProjectId,
  type Recipient,
  SendGroupV1,
  sendGroupOf,
} from "@herald/contracts";
import { readStream } from "@herald/testing";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type DispatchTest, day, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

/** A dispatch for the tests of a file, to which groups of sends come as the gateway publishes them. */
export function useSendGroups() {
  let dispatch: DispatchTest;
  let answers: RegistryFixture;

  beforeAll(async () => {
    // One push hangs until this timeout, and the stop waits for it.
    dispatch = await startDispatchTest({ HERALD_DISPATCH_REQUEST_TIMEOUT: "5s" });
    answers = handleResolveSends(dispatch.bus);
  });
  afterAll(async () => {
    await answers.stop();
    await dispatch.stop();
  });
  beforeEach(() => {
    answers.reset();
    dispatch.simulators.clear();
  });

  /** Sends of one project, each to its own target, as the gateway groups them. */
  const groupOf = (projectId: ProjectId, targets: readonly string[], change: Partial<GroupedSend> = {}) => {
    const sends = newNotificationIds(new Date(), targets.length).map(
      (notificationId, at): GroupedSend => ({
        projectId,
        notificationId,
        content: { title: "Hello", targets: [targets[at] ?? ""] },
        acceptedAt: dispatch.now().toISOString(),
        expiresAt: new Date(dispatch.now().getTime() + day).toISOString(),
        ...change,
      }),
    );
    const ids = sends.map(({ notificationId }) => notificationId);
    return { groupId: sendGroupOf(ids[0] ?? "ntf_"), sends, ids };
  };

  const put = ({ groupId, sends }: { groupId: NotificationId; sends: GroupedSend[] }, id: string = groupId) =>
    publish(dispatch.bus, SendGroupV1, { groupId, sends }, { id });

  const known = (target: string, some: readonly Recipient[]) => {
    answers.registry.set(target, { devices: some });
    return some;
  };

  const accept = async (projectId: ProjectId, ...targets: string[]): Promise<NotificationId[]> => {
    const group = groupOf(projectId, targets);
    await put(group);
    return group.ids;
  };

  /** The types of a notification's events, in the order of the stream. */
  const eventsOf = async (projectId: ProjectId, id: NotificationId) => {
    const all = await readStream(dispatch.broker, "PUSH_EVENTS", `push.evt.v1.${projectId}.>`);
    return all.filter(({ body }) => body.includes(id)).map(({ subject }) => subject.split(".").slice(4).join("."));
  };

  const pushesTo = (some: readonly Recipient[]) =>
    some.map(({ token }) => dispatch.simulators.pushes({ status: 200 }).filter((push) => push.token === token).length);

  return { dispatch: () => dispatch, answers: () => answers, groupOf, put, known, accept, eventsOf, pushesTo };
}
