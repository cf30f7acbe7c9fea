import { type Activity, type ActivityRecord, type Device, type Notification, servingProvider } from "@herald/contracts";

export type ChannelViews = NonNullable<Activity["channels"]>;

/** The channels of an activity as the API shows them. */
export const channelViews = (channels: NonNullable<ActivityRecord["channels"]>): ChannelViews =>
  Object.entries(channels).map(([name, { sent, problem }]) => {
    const [app, environment] = name.split("/") as [string, ChannelViews[number]["environment"]];
    return { app, environment, ...(sent !== undefined && { version: sent }), ...(problem && { problem }) };
  });

type OfDevice = {
  readonly notification: Pick<Notification, "created_at">;
  readonly device: Pick<Device, "platform" | "provider" | "tokens">;
  readonly delivery?: object | undefined;
};

/** The channels that a device may follow: on iOS, if its start token says so, or if no push was for it, because its app starts the activity. */
export const channelsFor = (
  { notification, device, delivery }: OfDevice,
  record: ActivityRecord | undefined,
): ChannelViews => {
  // An id may be used again.
  if (!record?.channels || record.createdAt > Date.parse(notification.created_at)) return [];
  if (device.platform !== "ios" || servingProvider(device) !== "apns") return [];
  const saysSo = device.tokens?.some(({ channels, name }) => channels && name === record.attributesType);
  return saysSo || !delivery ? channelViews(record.channels) : [];
};

/** What a channel is for its devices. The problem is Apple's word, or Herald's. */
export const channelSentence = ({ app, environment, version = 1, problem }: ChannelViews[number]): string => {
  const last = problem === undefined ? `last version ${version}` : `or by their tokens: \`${problem}\``;
  return `Devices with the channel of \`${app}\` (${environment}) get versions by a broadcast, ${last}. Apple gives no result per device.`;
};
