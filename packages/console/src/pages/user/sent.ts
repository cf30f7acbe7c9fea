import type { Device, DeviceNotification, Herald, Notification } from "@herald/client";
import { firstRows } from "../../api/read.ts";
import { mergeSent, type SentSource } from "./merge-sent.ts";

const seenAt = ({ last_seen_at, updated_at }: Device): string => last_seen_at ?? updated_at;

/** More would cost Herald more than a page is worth. */
export const maxTimelines = 5;

/** Of the devices seen last, what each got while it was the user's; beside it what names the user and reached no device. */
export const readSent = async (herald: Herald, user: string, limit: number, signal: AbortSignal) => {
  const { devices } = await herald.users.get(user, { signal });
  const latest = devices.toSorted((one, other) => (seenAt(one) < seenAt(other) ? 1 : -1)).slice(0, maxTimelines);
  const options = { signal, perPage: Math.min(limit + 1, 100) };
  const ofDevice = async ({ id: device }: Device): Promise<SentSource> => {
    const { data, more } = await firstRows<DeviceNotification>(herald.devices.notifications(device, options), limit);
    const rows = data
      .filter(({ user_id }) => user_id === user)
      .map(({ notification, opened_at, status, reason }) => ({
        notification,
        status: opened_at === undefined ? status : "opened",
        reason,
        device,
      }));
    return { rows, end: more ? data.at(-1)?.notification.id : undefined };
  };
  const naming = async (): Promise<SentSource> => {
    const list = herald.users.notifications(user, { ...options, sort: "-created_at" });
    const { data, more } = await firstRows<Notification>(list, limit);
    const rows = data.map((notification) => ({ notification, status: notification.status }));
    return { rows, end: more ? data.at(-1)?.id : undefined };
  };
  const { data, more } = mergeSent(await Promise.all([naming(), ...latest.map(ofDevice)]));
  return { data, more, others: devices.length - latest.length };
};
