import { type DeviceId, type EventData, erasedTarget, parseTarget } from "@herald/contracts";

/** A user, or a device without one, who has not opened a notification. */
export type UnopenedBy = Pick<EventData<"NotificationUnopenedV1">, "user_id" | "device_id" | "reason">;

/** A device that a notification was sent to. `userId`: its user at that time; undefined: it had none. */
export type SentDevice = {
  readonly id: DeviceId;
  readonly userId: string | undefined;
  readonly accepted: boolean;
  readonly opened: boolean;
};

/**
 * Finds who has not opened a notification to `targets`, which are users, devices and push tokens: of those that the targets name, and of
 * those whose devices are added. A token without a device names no one. `missing`: why no device is added for some.
 */
export const collectUnopened = (targets: readonly string[], missing: UnopenedBy["reason"]) => {
  const all = new Map<string, UnopenedBy & { readonly opened?: boolean }>();
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
    list: (): UnopenedBy[] => [...all.values()].flatMap(({ opened, ...one }) => (opened ? [] : [one])),
  };
};
