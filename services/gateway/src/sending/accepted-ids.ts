import { type IdempotencyRecord, type NotificationId, notificationIdsFrom, sendGroupOf } from "@herald/contracts";

type Batch = NonNullable<IdempotencyRecord["batch"]>;

/** Packs the ids of a request's notifications; undefined stands for a refused one. The ids of a group must be consecutive. */
export const packAcceptedIds = (ids: readonly (NotificationId | undefined)[]): Batch => {
  const groups: Batch["groups"] = [];
  const bits = Buffer.alloc(Math.ceil(ids.length / 8));
  for (const [at, id] of ids.entries()) {
    if (id === undefined) continue;
    bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7));
    const last = groups.at(-1);
    if (last && sendGroupOf(last[0]) === sendGroupOf(id)) last[1]++;
    else groups.push([id, 1]);
  }
  return { groups, ...(ids.includes(undefined) ? { accepted: bits.toString("base64url") } : {}) };
};

/** The inverse of {@link packAcceptedIds} for a request of `count` notifications. */
export const unpackIds = ({ groups, accepted }: Batch, count: number): (NotificationId | undefined)[] => {
  const ids = groups.flatMap(([first, size]) => notificationIdsFrom(first, size)).values();
  const bits = accepted === undefined ? undefined : Buffer.from(accepted, "base64url");
  return Array.from({ length: count }, (_, at) =>
    bits === undefined || ((bits[at >> 3] ?? 0) >> (at & 7)) & 1 ? ids.next().value : undefined,
  );
};
