import { type DeviceId, type EventData, erasedTarget, parseTarget } from "@herald/contracts";

/** A user, or a device without one, whom a notification is for. */
export type Addressee = Pick<EventData<"NotificationUnopenedV1">, "user_id" | "device_id" | "reason">;

/** A device that a notification was sent to. `userId`: its user at that time; undefined: it had none. */
export type SentDevice = {
  readonly id: DeviceId;
  readonly userId: string | undefined;
  readonly accepted: boolean;
  readonly opened: boolean;
};

/**
 * Finds the addressees of a notification to `targets`, which are users, devices and push tokens: those that the targets name, and those whose
 * devices are added. A token without a device names nobody. `missing`: why one without devices has none.
 */
export const createAddressees = (targets: readonly string[], missing: Addressee["reason"]) => {
  const all = new Map<string, Addressee & { readonly opened?: boolean }>();
  for (const source of targets) {
    const parsed = parseTarget(source);
    if (!("target" in parsed) || source === erasedTarget) continue;
    const { target } = parsed;
    if (target.kind === "user") all.set(`user:${target.id}`, { user_id: target.id, reason: missing });
    if (target.kind === "device") all.set(`device:${target.id}`, { device_id: target.id, reason: missing });
  }
  const anyErased = targets.includes(erasedTarget);

  return {
    add: ({ id, userId, accepted, opened }: SentDevice): void => {
      const own = `device:${id}`;
      // The rows do not say which devices were an erased user's.
      if (userId === undefined && anyErased && !all.has(own)) return;
      if (userId !== undefined) all.delete(own);
      const key = userId === undefined ? own : `user:${userId}`;
      const known = all.get(key);
      all.set(key, {
        ...(userId === undefined ? { device_id: id } : { user_id: userId }),
        reason: accepted || known?.reason === "unopened" ? "unopened" : "not-delivered",
        opened: opened || known?.opened === true,
      });
    },
    /** Those none of whose devices opened it. */
    unopened: (): Addressee[] => [...all.values()].flatMap(({ opened, ...one }) => (opened ? [] : [one])),
  };
};
