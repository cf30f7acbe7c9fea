import { randomUUID } from "node:crypto";
import { publish } from "@herald/bus";
import {
  type GroupedSend,
  type NotificationId,
  newNotificationIds,
  type ProjectId,
  type Recipient,
  SendGroupV1,
  SendOneV1,
  sendGroupOf,
} from "@herald/contracts";
import { readPublished } from "@herald/testing";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type DispatchTest, day, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

/** A dispatch for the tests of a file, to which groups of sends come as the gateway publishes them. */
export function useSendGroups(...settings: Parameters<typeof startDispatchTest>) {
  let dispatch: DispatchTest;
  let answers: RegistryFixture;

  beforeAll(async () => {
    dispatch = await startDispatchTest(...settings);
    answers = handleResolveSends(dispatch.bus);
  });
  afterAll(async () => {
    await answers.stop();
    await dispatch.stop();
  });
  beforeEach(() => {
    answers.reset();
    dispatch.moved.clear();
    dispatch.simulators.clear();
  });

  /** Sends of one project, each to its own target, as the gateway groups them. */
  const sendsTo = (projectId: ProjectId, targets: readonly string[], change: Partial<GroupedSend> = {}) =>
    newNotificationIds(new Date(), targets.length).map(
      (notificationId, at): GroupedSend => ({
        projectId,
        notificationId,
        content: { title: "Hello", targets: [targets[at] ?? ""] },
        acceptedAt: dispatch.now().toISOString(),
        expiresAt: new Date(dispatch.now().getTime() + day).toISOString(),
        ...change,
      }),
    );

  const groupOf = (sends: readonly GroupedSend[]) => {
    const ids = sends.map(({ notificationId }) => notificationId);
    return { groupId: sendGroupOf(ids[0] ?? "ntf_"), sends, ids };
  };
  type Group = ReturnType<typeof groupOf>;

  const put = ({ groupId, sends }: Group, id: string = groupId) =>
    publish(dispatch.bus, SendGroupV1, { groupId, sends: [...sends] }, { id });

  const putAlone = (send: GroupedSend) => publish(dispatch.bus, SendOneV1, send, { id: randomUUID() });

  const known = (target: string, some: readonly Recipient[]) => {
    answers.registry.set(target, { devices: some });
    return some;
  };

  /** Sends to these devices, which registry knows. */
  const sendsOf = (projectId: ProjectId, some: readonly Recipient[], change?: Partial<GroupedSend>) => {
    for (const one of some) known(one.id, [one]);
    const targets = some.map(({ id }) => id);
    return sendsTo(projectId, targets, change);
  };

  const acceptAll = async (sends: readonly GroupedSend[]): Promise<NotificationId[]> => {
    const group = groupOf(sends);
    await put(group);
    return group.ids;
  };

  const accept = (projectId: ProjectId, ...targets: string[]) => acceptAll(sendsTo(projectId, targets));

  /** The types of a notification's events, in the order of the stream. */
  const eventsOf = async (projectId: ProjectId, id: NotificationId) => {
    const all = await readPublished(dispatch.broker, `push.evt.v1.${projectId}.>`);
    return all.filter(({ body }) => body.includes(id)).map(({ subject }) => subject.split(".").slice(4).join("."));
  };

  const pushesTo = (some: readonly Recipient[]) =>
    some.map(({ token }) => dispatch.simulators.pushes({ status: 200 }).filter((push) => push.token === token).length);

  return {
    dispatch: () => dispatch,
    answers: () => answers,
    sendsTo,
    sendsOf,
    groupOf,
    put,
    putAlone,
    known,
    accept,
    acceptAll,
    eventsOf,
    pushesTo,
  };
}
