import { type Bus, groupedPublish } from "@herald/bus";
import {
  audienceOfContent,
  ExpandV1,
  type NotificationId,
  type ProjectId,
  pagesOfExpansion,
  ttlMsOf,
} from "@herald/contracts";
import { createGroupCommit, type Logger, type PeriodicTask, runEvery } from "@herald/kit";
import { laneOf } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { expansionAt } from "../domain/expansions.ts";
import { pauseOf } from "../project-rules.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { ActivitySends } from "./activity-sends.ts";
import type { RuleEvaluator } from "./rule-evaluator.ts";

/** The expansion that is next, as registry needs it. The time to live of its devices begins with it, if others have another time. */
const nextOf = ({ _id, expansions, expiresAt, content }: NotificationRecord) => {
  if (!expansions) throw new Error(`${_id} has no expansions`);
  const { n, local } = expansions;
  const { at, zones, buckets, skip } = expansionAt(expansions, n) ?? {};
  const ttlMs = local?.ttlMs ?? (buckets && ttlMsOf(content.ttl));
  const end = at && ttlMs !== undefined ? new Date(at.getTime() + ttlMs) : expiresAt;
  return {
    page: n * pagesOfExpansion,
    expiresAt: (end < expiresAt || local ? end : expiresAt).toISOString(),
    expansion: { n, ...(zones && { zones: [...zones] }), ...(buckets && { buckets }), ...(skip && { skip }) },
  };
};

/**
 * Commands the next expansion of a notification, from its first page. Repeatable: registry partitions every page once. A retry that is
 * intended has another message id, so that the stream does not drop it as a duplicate.
 */
export const createExpand = (
  bus: Bus,
  evaluator: Pick<RuleEvaluator, "askedOf">,
  { endAtItsTime }: Pick<ActivitySends, "endAtItsTime">,
) => {
  const publish = groupedPublish(() => bus, ExpandV1);
  return async (document: NotificationRecord): Promise<void> => {
    const { _id, projectId, content, personal, expansions } = document;
    const next = nextOf(document);
    if (content.activity) await endAtItsTime(document);
    const data: ExpandV1 = {
      projectId,
      notificationId: _id,
      fromBucket: 0,
      ...audienceOfContent(content),
      ...(content.recipients && { recipients: content.recipients.kind }),
      ...(personal?.devicePaths && { devicePaths: personal.devicePaths }),
      ...evaluator.askedOf(projectId, content),
      lane: laneOf(content.targets),
      ...next,
    };
    return publish(data, `${_id}/expand/${next.expansion.n}/${expansions?.againAt?.getTime() ?? 0}`);
  };
};

export type Expand = ReturnType<typeof createExpand>;

/**
 * Batches concurrent calls by project: they share one run of `work`, and only one round runs at a time. In a round, each project
 * succeeds or fails independently. A call resolves after a round that began at or after the call.
 */
export const batchByProject = <Item>(
  work: (projectId: ProjectId, items: readonly Item[]) => Promise<unknown>,
): ((projectId: ProjectId, item: Item) => Promise<void>) => {
  type Asked = { readonly projectId: ProjectId; readonly item: Item };
  const commit = createGroupCommit<Asked, PromiseSettledResult<unknown>>(
    async (all) => {
      const byProject = Map.groupBy(all, ({ projectId }) => projectId);
      const results = await Promise.allSettled(
        [...byProject].map(([projectId, asked]) =>
          work(
            projectId,
            asked.map(({ item }) => item),
          ),
        ),
      );
      const resultOf = new Map([...byProject.keys()].map((projectId, at) => [projectId, results[at]]));
      return all.map(({ projectId }) => resultOf.get(projectId) as PromiseSettledResult<unknown>);
    },
    { max: 1_000, concurrent: 1 },
  );
  return async (projectId, item) => {
    const result = await commit({ projectId, item });
    if (result.status === "rejected") throw result.reason;
  };
};

/** Runs `work` at intervals for every project that `projectAfter` finds, in order of their ids. */
export const sweepProjects = (
  name: string,
  everyMs: number,
  /** The first project with work whose id is greater than `projectId`. */
  projectAfter: (projectId: string) => Promise<ProjectId | undefined>,
  work: (projectId: ProjectId) => Promise<void>,
  log: Logger,
): PeriodicTask =>
  runEvery(name, everyMs, log, async (signal) => {
    let projectId = await projectAfter("");
    while (projectId !== undefined && !signal.aborted) {
      await work(projectId);
      projectId = await projectAfter(projectId);
    }
  });

/**
 * Expansions of one project that may run at a time. Registry holds each in memory while the project's delivery queues are full: 32 of
 * the largest take 2 MiB of its 64 MiB, and its consumer has room for 600 such projects. At about 50 ms from one command to the
 * next, 32 are enough for 600 notifications a second.
 */
const maxRunning = 32;
const sweepEveryMs = 30_000;

type ExpandQueuedDeps = Pick<Deps, "expansions" | "notifications" | "now" | "rules"> & { readonly expand: Expand };

/** How often a paused project's notifications are looked through for those that are cancelled or have expired: all that waits is read. */
const pausedEveryMs = 600_000;

/**
 * Commands the expansion of a project's queued notifications, oldest first, up to {@link maxRunning} at a time. Repeatable. `added`: a
 * notification that was just queued; if it can start at once, it is not read from the database.
 */
export const createExpandQueued = ({ expansions, notifications, expand, rules, now }: ExpandQueuedDeps) => {
  /** When paused projects were looked through last. */
  const lookedAt = new Map<ProjectId, number>();

  const isPaused = (projectId: ProjectId): boolean => {
    if (pauseOf(rules, projectId)) return true;
    lookedAt.delete(projectId);
    return false;
  };

  const command = async (projectId: ProjectId, id: NotificationId): Promise<NotificationRecord | undefined> => {
    const document = await notifications.get(projectId, id);
    if (document?.step !== "accepted") return undefined;
    await expand(document);
    return document;
  };

  const commandKnown = async (document: NotificationRecord): Promise<NotificationRecord> => {
    await expand(document);
    return document;
  };

  const one = async (projectId: ProjectId, asked: readonly (NotificationRecord | undefined)[]): Promise<void> => {
    if (rules.loading) await rules.loading;
    const paused = isPaused(projectId);
    if (paused && now().getTime() - (lookedAt.get(projectId) ?? 0) < pausedEveryMs) return;
    const room = maxRunning - (await expansions.countRunning(projectId, maxRunning));
    if (room <= 0) return;
    if (paused) lookedAt.set(projectId, now().getTime());
    const added = asked.flatMap((one) => one ?? []);
    // With a place left, the queue holds no others, or only after a crash: a call without `added` follows.
    const known = !paused && added.length === asked.length && added.length < room;
    const next = known ? added.map(({ _id }) => _id) : await expansions.oldest(projectId, room, { paused, now: now() });
    if (next.length === 0) return;
    // Commanded first: after a crash, it is commanded again, and registry produces the same batches for the repeat.
    const commanded = await Promise.all(known ? added.map(commandKnown) : next.map((id) => command(projectId, id)));
    const byNumber = Map.groupBy(
      commanded.flatMap((one) => one ?? []),
      (one) => one.expansions?.n ?? 0,
    );
    for (const [n, some] of byNumber) {
      const ids = some.map(({ _id }) => _id);
      await expansions.start(projectId, ids, n, now());
    }
  };

  // One round at a time, so that no project is read before its last command is stored. Calls during a round share the next one.
  const expandBatched = batchByProject<NotificationRecord | undefined>(one);
  return (projectId: ProjectId, added?: NotificationRecord): Promise<void> => expandBatched(projectId, added);
};

export type ExpandQueued = ReturnType<typeof createExpandQueued>;

/** Continues the queues of all projects at intervals, because the messages that continue them may be lost. */
export const sweepExpansions = ({
  expansions,
  expandQueued,
  log,
}: Pick<Deps, "expansions" | "log"> & { readonly expandQueued: ExpandQueued }): PeriodicTask =>
  sweepProjects("continue queued expansions", sweepEveryMs, expansions.projectAfter, (id) => expandQueued(id), log);
