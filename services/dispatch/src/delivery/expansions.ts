import { setTimeout as delay } from "node:timers/promises";
import { type Bus, sendRequest } from "@herald/bus";
import {
  audienceOfContent,
  audienceRequests,
  type ExpandedV1,
  type NotificationId,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { planWaves, type ZoneWave } from "@herald/rules";
import type { Deps } from "../deps.ts";
import {
  type Expansions,
  expansionAt,
  firstPart,
  isTooLate,
  replan,
  tookPlace,
  withExpanded,
} from "../domain/expansions.ts";
import { decideNextPart, type PartDecision, pacedFrom, planRollout } from "../domain/rollout.ts";
import { pauseOf } from "../project-rules.ts";
import {
  beginningOf,
  expansionOf,
  type NotificationRecord,
  type NotificationState,
  type ShownNotification,
} from "../stores/notification-document.ts";
import { toAccepted, toAcceptedAgain, toExpanded, toLastExpansion, toRecheck } from "../stores/notification-steps.ts";
import type { DueMessages, Finisher } from "./follow-up.ts";

/** The zones of the devices that a notification may have. Throws `service-unavailable` while registry is unavailable. */
const zonesOf = async (bus: Bus, { projectId, content }: Pick<SendV1, "projectId" | "content">): Promise<string[]> =>
  (await sendRequest(bus, audienceRequests.zones, { projectId, ...audienceOfContent(content) })).zones;

/** A rollout that is held is looked at again after half the time that it has waited, but not sooner or later than this. */
const [minLookMs, maxLookMs] = [100, 2_000];
/** One that is held for twice as long is looked at by the sweep. */
const sweptAfterMs = 30_000;
/** The first devices of most rollouts have their outcomes before the broker's clock could come round. */
const firstLooks = { most: 8, everyMs: 25 };
/** Devices that wait for longer than this have a set time, such as the end of quiet hours: a rollout does not wait for them. */
const laterMs = 300_000;

/** How often a paused notification whose time has come is looked at. A resume makes it due. */
const pausedCheckMs = 3_600_000;

/** What decides the expansions of a notification. */
type Planned = Pick<
  SendV1,
  "projectId" | "notificationId" | "content" | "local" | "sendAt" | "acceptedAt" | "proposal"
>;
type PlannedParts = Pick<Planned, "projectId" | "notificationId" | "content"> & { readonly at: Date };

type Stored = ReturnType<typeof toExpanded>;
type Decided = { readonly decision: PartDecision };
/** An expansion that has begun. `document`: its notification, if it can be commanded without another look. */
type Begun = { readonly document?: NotificationRecord };

type ExpansionDeps = Pick<Deps, "bus" | "ledger" | "notifications" | "now" | "outbox" | "rules"> & {
  readonly finisher: Finisher;
  readonly dueMessages: DueMessages;
};

/** The expansions of large sends: usually one; several in turn, each at its time, if the time is that of each device. */
export const createExpansions = (deps: ExpansionDeps) => {
  const { bus, ledger, notifications, finisher, dueMessages, outbox, rules, now } = deps;
  const waves = async (
    local: NonNullable<Expansions["local"]>,
    of: Pick<SendV1, "projectId" | "content">,
  ): Promise<ZoneWave[]> => planWaves(local, await zonesOf(bus, of));

  const planParts = async ({ projectId, notificationId, content, at }: PlannedParts): Promise<Expansions> => {
    const { devices } = await sendRequest(bus, audienceRequests.size, { projectId, ...audienceOfContent(content) });
    const plan = planRollout(notificationId, content.rollout ?? {}, devices);
    return firstPart({ ...plan, past: { n: 0, batches: 0, devices: 0 }, begun: 1 }, at);
  };

  /** Whether the next part of a rollout may begin, by the results of the devices before it. */
  const decisionOn = async (document: ShownNotification): Promise<PartDecision> => {
    const { content, expansions } = document;
    const { rollout } = expansions ?? {};
    const { per_minute: perMinute, stop_if: stopIf } = content.rollout ?? {};
    if (!expansions || !rollout || !content.rollout || (perMinute ?? stopIf) === undefined) return undefined;
    if (tookPlace(expansions, expansions.n)) return undefined;
    const later = new Date(now().getTime() + laterMs);
    const results = await ledger.results(document, { counted: stopIf !== undefined, later });
    return decideNextPart(content.rollout, rollout, results);
  };

  const decisionSoon = async (document: ShownNotification, decided?: Decided): Promise<PartDecision> => {
    let { decision } = decided ?? { decision: await decisionOn(document) };
    for (let looks = 1; looks < firstLooks.most; looks++) {
      if (!decision || !("held" in decision) || decision.held !== "few-outcomes") break;
      await delay(firstLooks.everyMs);
      decision = await decisionOn(document);
    }
    return decision;
  };

  /** The expansions as they are planned when expansion `n` begins. One that takes place again keeps its zones, and those behind it. */
  const planned = async (
    document: ShownNotification,
    expansions: Expansions,
  ): Promise<Pick<Expansions, "list" | "rollout">> => {
    const { n, list, local, rollout } = expansions;
    const at = now();
    if (local) return { list: tookPlace(expansions, n) ? list : replan(expansions, await waves(local, document)) };
    if (!rollout) return { list };
    // Devices may have come or gone since a scheduled one was accepted.
    if (n === 0 && document.expanded === undefined) return planParts({ ...document, notificationId: document._id, at });
    const current = expansionAt(expansions, n);
    return {
      list: list.map((one) => (one === current ? { ...one, at, pacedFrom: pacedFrom(one.at, at) } : one)),
      rollout,
    };
  };

  /** Not after a stop: its devices are only counted. */
  const isHeld = ({ projectId, paused, stop }: NotificationState) =>
    !stop && (paused !== undefined || pauseOf(rules, projectId) !== undefined);

  /** Begins the next expansion if its time has come. `decided`: a moment ago. */
  const beginNext = async (document: NotificationRecord, decided?: Decided): Promise<Begun | undefined> => {
    if (rules.loading) await rules.loading;
    const { projectId, _id: id, expansions, step } = document;
    if (!expansions) return undefined;
    const { n, rollout } = expansions;
    const next = expansionAt(expansions, n);
    if (step !== "scheduled" || !next || next.at > now()) return undefined;
    // What expires meanwhile is expanded, so that its devices are counted.
    if (document.expiresAt > now() && isHeld(document)) {
      const again = Math.min(now().getTime() + pausedCheckMs, document.expiresAt.getTime());
      await notifications.advance(projectId, id, toRecheck({ ...document, expansions }, new Date(again)));
      // Resumed meanwhile: the resume may have found it before the update above.
      const known = await notifications.getState(projectId, id);
      if (known?.step === "scheduled" && !isHeld(known)) await dueMessages.publish(known, now());
      return undefined;
    }
    /** Somebody else changed it since it was read: it is looked at again. */
    const changed = async () => void (await dueMessages.publish(document, now()));
    if (!rollout && !tookPlace(expansions, n) && isTooLate(expansions, now())) {
      await notifications.advance(projectId, id, toLastExpansion({ expansions }, now(), false));
      await finisher.check(projectId, id);
      return undefined;
    }
    const decision = document.expiresAt > now() ? await decisionSoon(document, decided) : undefined;
    if (decision && "stop" in decision) {
      if (!(await notifications.pause(document, { at: now(), reason: decision.stop }, expansions))) return changed();
      await outbox.flushNotification(document);
      return undefined;
    }
    if (decision) {
      const waitMs = (now().getTime() - next.at.getTime()) / 2;
      const again = new Date(now().getTime() + Math.min(maxLookMs, Math.max(minLookMs, waitMs)));
      if (!(await notifications.advance(projectId, id, toRecheck({ ...document, expansions }, again, decision.held))))
        return changed();
      // Later, the sweep also looks for lost messages, without which it would be held for ever.
      if (waitMs < sweptAfterMs) await dueMessages.schedule(document, again);
      return undefined;
    }
    const plan = await planned(document, expansions);
    if (!(await notifications.advance(projectId, id, toAccepted({ ...document, expansions }, plan)))) return changed();
    // What is no rollout may have been paused since it was read.
    const begun = { step: "accepted", nextAt: undefined, expansions: { ...expansions, ...plan } } as const;
    return rollout ? { document: { ...document, ...begun } } : {};
  };

  /** What `after` says of a notification is being stored. */
  const readAfter = async (projectId: ProjectId, id: NotificationId, after: NonNullable<Stored["next"]>) => {
    const found = await notifications.get(projectId, id);
    if (!found || found.end) return undefined;
    const document: NotificationRecord = { ...found, ...after };
    return { document, decision: await decisionOn(document) };
  };

  /** Begins the next expansion if its time has come. Undefined when it still waits, or nothing is left to expand. Repeatable. */
  const begin = async (projectId: ProjectId, id: NotificationId): Promise<Begun | undefined> => {
    const document = await notifications.get(projectId, id);
    // After a crash behind the update of its step, the message is redelivered, and the expansion must still be commanded.
    if (document?.expansions && (document.step === "accepted" || document.step === "expanding")) return {};
    return document ? beginNext(document) : undefined;
  };

  return {
    planOf: async (send: Planned): Promise<Expansions> => {
      // Planned when it is approved.
      if (send.proposal) return { ...expansionOf(send), ...(send.local && { local: send.local }) };
      if (send.local) return { n: 0, list: await waves(send.local, send), local: send.local };
      return send.content.rollout ? planParts({ ...send, at: beginningOf(send) }) : expansionOf(send);
    },

    begin,

    /** Registry has partitioned every batch of an expansion. Begins or schedules the next one, or waits for the end. Repeatable. */
    expanded: async (done: ExpandedV1, at: Date): Promise<Begun | undefined> => {
      const { projectId, notificationId } = done;
      for (;;) {
        const known = await notifications.getState(projectId, notificationId);
        if (!known?.expansions || known.end) return undefined;
        const { expansions, step, nextAt } = known;
        if (expansions.n !== done.n) {
          // A repeat, perhaps after a crash behind the update below.
          if (step === "scheduled") await dueMessages.schedule(known, nextAt);
          return undefined;
        }
        if (step !== "accepted" && step !== "expanding" && !known.expanded?.lost) return undefined;
        const state = { ...known, expansions };
        const { next, transition } = toExpanded(state, withExpanded(state, done, at), now());
        // Read and judged while that is stored: nothing is expanded meanwhile.
        const [isStored, read] = await Promise.all([
          notifications.advance(projectId, notificationId, transition),
          next && next.nextAt <= now() ? readAfter(projectId, notificationId, next) : undefined,
        ]);
        if (!isStored) continue;
        if (read) return beginNext(read.document, read);
        if (next) await dueMessages.schedule(known, next.nextAt);
        return undefined;
      }
    },

    /** Expands a notification again whose messages are gone, with the same batch ids. False when it has changed since it was read. */
    again: async (known: NotificationState): Promise<boolean> => {
      const { projectId, _id, expansions } = known;
      if (!expansions) return false;
      return notifications.advance(projectId, _id, toAcceptedAgain({ ...known, expansions }, now()));
    },
  };
};

export type ExpansionSteps = ReturnType<typeof createExpansions>;
