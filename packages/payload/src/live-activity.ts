import type { ActivityPush } from "@herald/contracts";
import { type BodyOf, compact, type PushOrigin } from "./render.ts";

/** Apple counts in seconds since 1970. */
const seconds = (time: string | undefined): number | undefined =>
  time === undefined ? undefined : Math.floor(Date.parse(time) / 1_000);

/** What iOS calls the event. To a device, a join is an update, or an end. */
const eventOf = ({ event, ended }: ActivityPush): string => {
  if (event !== "join") return event;
  return ended ? "end" : "update";
};

/**
 * `aps` of a Live Activity ("Starting and updating Live Activities with ActivityKit push notifications"). `attributes` are last: an open
 * token is added at their end.
 */
const aps = (push: ActivityPush, origin: PushOrigin): Record<string, unknown> => {
  const isStart = push.event === "start";
  const herald = { activity: push.id, project_id: origin.projectId, notification_id: origin.notificationId, token: "" };
  return compact({
    timestamp: push.timestamp,
    event: eventOf(push),
    "content-state": push.content_state,
    alert: push.alert,
    "stale-date": seconds(push.stale_at),
    "dismissal-date": seconds(push.dismiss_at),
    "relevance-score": push.relevance,
    // Without it, the app of a started activity gets no update token.
    "input-push-token": isStart && origin.channel === undefined ? 1 : undefined,
    "input-push-channel": isStart ? origin.channel : undefined,
    "attributes-type": push.attributes_type,
    attributes: isStart ? { ...push.attributes, herald } : undefined,
  });
};

/** A JSON text that ends with an empty open token, and closing brackets. */
const withToken = (json: string, isStart: boolean): ((openToken: string) => string) => {
  if (!isStart) return () => json;
  const at = json.lastIndexOf('"token":""') + '"token":"'.length;
  const [head, tail] = [json.slice(0, at), json.slice(at)];
  return (openToken) => head + openToken + tail;
};

/** The payload that APNs gets. Only a start has an open token, in its attributes: the app sees no other part of these pushes. */
export const activityBody = (push: ActivityPush, origin: PushOrigin): BodyOf =>
  withToken(JSON.stringify({ aps: aps(push, origin) }), push.event === "start");

type FcmTarget = { readonly token: string; readonly kind: string; readonly liveToken?: string | undefined };

/** The message for FCM, which passes the payload and the token of the activity to APNs. Its headers name the type and the topic. */
export const activityFcmBody = (
  push: ActivityPush,
  origin: PushOrigin,
  headers: Readonly<Record<string, string>>,
): ((target: FcmTarget, openToken: string) => string) => {
  const payload = activityBody(push, origin);
  return ({ token, kind, liveToken = "" }, openToken) => {
    const address = JSON.stringify({ [kind]: token }).slice(1, -1);
    const apns = JSON.stringify({ live_activity_token: liveToken, headers }).slice(0, -1);
    return `{"message":{${address},"apns":${apns},"payload":${payload(openToken)}}}}`;
  };
};
