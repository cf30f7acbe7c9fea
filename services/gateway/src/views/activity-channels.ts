import type { Activity, ActivityRecord } from "@herald/contracts";

type ChannelViews = NonNullable<Activity["channels"]>;

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

/** What the channels of an activity are for its devices, in sentences. */
export const channelSentences = (views: ChannelViews): string[] =>
  views.map(({ app, environment, version, problem }) => {
    const which = `the channel of \`${app}\` (${environment})`;
    if (problem !== undefined && version === undefined)
      return `Apple gave no channel for \`${app}\` (${environment}): \`${problem}\`. Its devices get the activity by their tokens.`;
    if (problem !== undefined) return `Apple refused version ${version} for ${which}: \`${problem}\`.`;
    return `Devices that follow ${which} get each version by a broadcast${version === undefined ? "" : `, last version ${version}`}. Apple says nothing of single devices.`;
  });
