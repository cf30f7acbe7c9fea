import { type Bus, currentOrigin, groupedPublish, publish } from "@herald/bus";
import {
  type GroupedSend,
  maxGroupSize,
  newNotificationIds,
  parseTarget,
  SendGroupV1,
  SendV1,
  sendGroupOf,
} from "@herald/contracts";
import { createGroupCommit } from "@herald/kit";

/** About two seconds of the highest load that a gateway takes. */
const maxWaiting = 10_000;
/** So many usual ones, or a thousand of the largest. */
const maxBytes = 64 * 1_048_576;
/** More targets reach more devices than a small send has, or would if each named one. */
const maxSmallTargets = 100;
/** The broker's default for one message is 1 MiB. */
const maxGroupBytes = 524_288;
/** While one group is synced to disk the next is on its way. */
const concurrentGroups = 2;

const smallKinds: ReadonlySet<string> = new Set(["device", "token", "user", "pair"]);

/** Whether a send goes to few devices, as far as its targets say: dispatch hands on what turns out to go to many. */
export const isSmall = ({ content: { targets }, sendAt }: SendV1): boolean =>
  sendAt === undefined &&
  targets.length <= maxSmallTargets &&
  targets.every((source) => {
    const parsed = parseTarget(source);
    return "target" in parsed && smallKinds.has(parsed.target.kind);
  });

export type SendCommands = {
  /** Resolves when the command, of so many bytes of JSON, is on disk. Repeatable. */
  readonly send: (command: SendV1, bytes: number) => Promise<void>;
  /** The same for a command whose id nobody knows yet. Resolves to it with the id that it was accepted under. */
  readonly sendNew: (command: SendV1, bytes: number) => Promise<SendV1>;
};

/**
 * Publishes sends. Those to few devices that are accepted while others are being written share one message, and get their ids when
 * it is closed; large ones, and those that wait for their time, are messages of their own.
 */
export const createSendCommands = (bus: () => Bus): SendCommands => {
  const publishLarge = groupedPublish(bus, SendV1, { waiting: maxWaiting, maxBytes });
  const publishGroup = async (sends: GroupedSend[]): Promise<void> => {
    const [first] = sends;
    if (first === undefined) return;
    const groupId = sendGroupOf(first.notificationId);
    await publish(bus(), SendGroupV1, { groupId, sends }, { id: groupId });
  };
  const commit = createGroupCommit<GroupedSend, SendV1>(
    async (items) => {
      const ids = newNotificationIds(new Date(), items.length);
      const sends = items.map((send, at) => ({ ...send, notificationId: ids[at] ?? send.notificationId }));
      await publishGroup(sends);
      return sends.map(({ origin: _, ...command }) => command);
    },
    {
      most: maxGroupSize,
      concurrent: concurrentGroups,
      groupBytes: maxGroupBytes,
      waiting: maxWaiting,
      maxBytes,
    },
  );
  const send = (command: SendV1, bytes: number): Promise<void> =>
    isSmall(command)
      ? publishGroup([{ ...command, origin: currentOrigin() }])
      : publishLarge(command, command.notificationId, bytes);
  return {
    send,
    sendNew: async (command, bytes) => {
      if (isSmall(command)) return commit({ ...command, origin: currentOrigin() }, bytes);
      await send(command, bytes);
      return command;
    },
  };
};
