import { suspectFromDelivery } from "@herald/bus";
import type { GroupedSend, NotificationId, ProjectId } from "@herald/contracts";
import { type FairGate, isUnavailable } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { pauseOf } from "../project-rules.ts";
import type { Claim } from "../stores/delivery-document.ts";
import { type BegunSends, type FailedSend, failedWith, type GroupMessage } from "./begun-sends.ts";
import type { DeliverGroup } from "./deliver-group.ts";

/** An error of an unavailable dependency comes first: it uses up no delivery attempt. The redelivery repeats all failed sends. */
export const throwAny = (failed: readonly FailedSend[]): void => {
  const one = failed.find(({ error }) => isUnavailable(error)) ?? failed[0];
  if (one) throw one.error;
};

/** `begun`: resolves when all sends of a group have places. `ended`: when they have ended, to those that failed. */
type Placed = { readonly begun: Promise<void>; readonly ended: Promise<FailedSend[]> };

/**
 * Delivers sends of one project and message as their project has places, a place each. What has not begun when the service stops has failed.
 * `onBegin` is called before a part begins. Neither promise rejects.
 */
export const createDeliverWithPlaces =
  (gate: FairGate, deliverGroup: DeliverGroup) =>
  (
    sends: readonly GroupedSend[],
    message: GroupMessage,
    { weight = 0, onBegin = () => {} }: { readonly weight?: number; readonly onBegin?: () => void } = {},
  ): Placed => {
    const [first] = sends;
    if (!first) return { begun: Promise.resolve(), ended: Promise.resolve([]) };
    const parts: Promise<FailedSend[]>[] = [];
    let from = 0;
    const begun = gate
      .enterEach(
        first.projectId,
        sends.length,
        (places, leave) => {
          onBegin();
          const to = from + places;
          parts.push(deliverGroup(sends.slice(from, to), message, leave));
          from = to;
        },
        weight,
      )
      .catch((error: unknown) => {
        parts.push(Promise.resolve(failedWith(error, sends.slice(from))));
      });
    return { begun, ended: begun.then(async () => (await Promise.all(parts)).flat()) };
  };

type DeliverSendsDeps = Pick<Deps, "rules" | "sendGroups"> & {
  readonly begun: BegunSends;
  readonly deliverWithPlaces: ReturnType<typeof createDeliverWithPlaces>;
  /** Limits how many sends are delivered at a time, in total and by project. Waiting sends only cost memory. */
  readonly gate: FairGate;
  readonly backlog: {
    /** Most projects have none. */
    readonly open: { has(projectId: ProjectId): boolean };
    isOpen(projectId: ProjectId): boolean;
    park(projectId: ProjectId, sends: readonly GroupedSend[], claim: Claim): Promise<void>;
  };
};

/** The message that contained the sends. */
export type SendMessage = GroupMessage & { readonly bytes: number; readonly deliveryCount: number };

const none: ReadonlySet<NotificationId> = new Set();

/**
 * Delivers the small sends of a message. The message is acked after their last events, so it serves as both outbox and lease. Sends beyond
 * their project's share wait in its backlog, which has its own message. Resolves to the sends that failed, when the others are done: a
 * redelivery detects that. From a message's third delivery on its sends may be the reason why processes died: each goes on with messages of
 * its own.
 */
export const createDeliverSends = ({
  sendGroups,
  begun,
  deliverWithPlaces,
  gate,
  backlog,
  rules,
}: DeliverSendsDeps) => {
  const park = (projectId: ProjectId, sends: readonly GroupedSend[], { claim }: SendMessage): Promise<FailedSend[]> =>
    backlog.park(projectId, sends, claim).then(
      () => [],
      (error: unknown) => failedWith(error, sends),
    );

  return async (all: readonly GroupedSend[], message: SendMessage): Promise<FailedSend[]> => {
    if (rules.loading) await rules.loading;
    const weight = message.bytes / all.length;
    const parked = message.again ? await sendGroups.waitingOf(all) : none;
    const open = parked.size > 0 ? all.filter(({ notificationId }) => !parked.has(notificationId)) : all;
    const isSuspect = message.deliveryCount >= suspectFromDelivery;
    // The bus handles a suspect alone, and counts the deaths over it.
    if (isSuspect && all.length > 1) return begun.continueApart(open, message.claim);
    const deliver = ([projectId, sends]: readonly [ProjectId, readonly GroupedSend[]]) => {
      const own = Math.ceil(weight * sends.length);
      // In the backlog, other sends would be beside a suspect. Most projects have none, which one look-up says.
      const isOpen =
        (backlog.open.has(projectId) && backlog.isOpen(projectId)) ||
        (rules.pauses.size > 0 && pauseOf(rules, projectId) !== undefined);
      if (!isSuspect && (isOpen || gate.isFull(projectId, own))) return park(projectId, sends, message);
      return deliverWithPlaces(sends, message, { weight: own }).ended;
    };
    const projects = Map.groupBy(open, ({ projectId }) => projectId);
    return (await Promise.all([...projects].map(deliver))).flat();
  };
};

export type DeliverSends = ReturnType<typeof createDeliverSends>;
