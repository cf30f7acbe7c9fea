import type { Activity, ActivityRecord } from "@herald/contracts";

export type ChannelViews = NonNullable<Activity["channels"]>;

/** The channels of an activity as the API shows them. */
export const channelViews = (channels: ActivityRecord["channels"] = {}): ChannelViews =>
  Object.entries(channels).map(([name, { sent, problem }]) => {
    const [app, environment] = name.split("/") as [string, ChannelViews[number]["environment"]];
    return {
      app,
      environment,
      ...(sent !== undefined && { version: sent }),
      ...(problem !== undefined && { problem }),
    };
  });

/** What a channel is for its devices. */
export const channelSentence = ({ app, environment, version = 1, problem }: ChannelViews[number]): string => {
  const last = problem === undefined ? `last version ${version}` : `or by their tokens: Apple said \`${problem}\``;
  return `Devices with the channel of \`${app}\` (${environment}) get versions by a broadcast, ${last}. Apple gives no result per device.`;
};
