import type { NotificationId, ProjectId } from "@herald/contracts";
import { deadlineOptions } from "@herald/mongo";
import type { Collection } from "mongodb";
import type { OpenDocument } from "./open-document.ts";

type Read = (of: {
  readonly projectId: ProjectId;
  readonly notificationId?: NotificationId | undefined;
  /** The id of an open; absent to begin. */
  readonly after?: string | undefined;
  readonly limit: number;
}) => Promise<OpenDocument[]>;

/** Opens of a project by time and id, or of one notification by id. Fewer than `limit`: there are no more. */
export const exportOpens = (opens: Collection<OpenDocument>, byTime: string): Read => {
  const ofNotification: Read = ({ projectId, notificationId, after, limit }) =>
    opens
      .find(
        // `0` is the character after `/`.
        { projectId, _id: { $gt: after ?? `${notificationId}/`, $lt: `${notificationId}0` } },
        { hint: "_id_", limit, batchSize: limit + 1, ...deadlineOptions() },
      )
      .sort({ _id: 1 })
      .toArray();

  /** The index has no ids, so those of the same moment are sorted by themselves. */
  const ofMoment = (projectId: ProjectId, openedAt: Date, after: string, limit: number): Promise<OpenDocument[]> =>
    opens
      .find(
        { projectId, openedAt, _id: { $gt: after } },
        { hint: byTime, limit, batchSize: limit + 1, ...deadlineOptions() },
      )
      .sort({ _id: 1 })
      .toArray();

  const later = (projectId: ProjectId, than: Date | undefined, limit: number): Promise<OpenDocument[]> =>
    opens
      .find(
        { projectId, ...(than && { openedAt: { $gt: than } }) },
        { hint: byTime, limit, batchSize: limit + 1, ...deadlineOptions() },
      )
      .sort({ openedAt: 1 })
      .toArray();

  const timeOf = async (projectId: ProjectId, id: string): Promise<Date | undefined> =>
    (await opens.findOne({ _id: id, projectId }, { hint: "_id_", projection: { openedAt: 1 } }))?.openedAt;

  const ofProject: Read = async ({ projectId, after, limit }) => {
    // Retention removes the oldest: what came after an open that it has removed begins with the first that is left.
    let at = after === undefined ? undefined : await timeOf(projectId, after);
    let found = at === undefined ? [] : await ofMoment(projectId, at, after ?? "", limit);
    while (found.length < limit) {
      const room = limit - found.length;
      const page = await later(projectId, at, room);
      const last = page.at(-1)?.openedAt;
      if (last === undefined) return found;
      const whole = page.filter(({ openedAt }) => openedAt < last).sort(byTimeAndId);
      // The last moment may have more than the page.
      found = [...found, ...whole, ...(await ofMoment(projectId, last, "", limit - found.length - whole.length))];
      at = last;
    }
    return found;
  };

  return (request) => (request.notificationId === undefined ? ofProject(request) : ofNotification(request));
};

const byTimeAndId = (one: OpenDocument, other: OpenDocument): number =>
  one.openedAt.getTime() - other.openedAt.getTime() || (one._id < other._id ? -1 : 1);
