import type { Notification } from "@herald/client";

/** A notification for a user. `device`: a device of the user's that it was for; absent: it names the user and has no result there yet. */
export type SentToUser = {
  readonly notification: Pick<Notification, "id" | "created_at" | "title" | "body" | "activity">;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly device?: string | undefined;
};

/** The first rows of a list, newest first. `end`: the notification behind which the list continues; absent: it has no more. */
export type SentSource = { readonly rows: readonly SentToUser[]; readonly end?: string | undefined };

/** From the best result to the worst: a user has a notification when one device has it. */
const results = ["opened", "accepted", "pending", "skipped", "failed", "expired", "cancelled"];

const rankOf = ({ device, status }: SentToUser): number => {
  const rank = results.indexOf(status);
  return device === undefined || rank < 0 ? results.length : rank;
};

/**
 * Each notification of several lists once, with its best result, newest first. Ends where the first of the lists does, because behind it
 * rows of that list are missing. Ids contain the time, so that they sort by it.
 */
export const mergeSent = (
  sources: readonly SentSource[],
): { readonly data: readonly SentToUser[]; readonly more: boolean } => {
  const ends = sources.flatMap(({ end }) => end ?? []);
  const oldest = ends.toSorted().at(-1) ?? "";
  const byId = Map.groupBy(
    sources.flatMap(({ rows }) => rows).filter(({ notification }) => notification.id >= oldest),
    ({ notification }) => notification.id,
  );
  const data = [...byId.entries()]
    .toSorted(([one], [other]) => (one < other ? 1 : -1))
    .flatMap(([, rows]) => rows.toSorted((one, other) => rankOf(one) - rankOf(other)).slice(0, 1));
  return { data, more: ends.length > 0 };
};
