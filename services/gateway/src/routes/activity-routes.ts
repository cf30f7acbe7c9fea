import { createHash } from "node:crypto";
import {
  Activity,
  type ActivityId,
  type ActivityKey,
  type ActivityRecord,
  ActivityVersion,
  activityLimits,
  activityRequests,
  audienceRequests,
  type Device,
  DeviceActivity,
  EndActivity,
  type NewActivity,
  PatchActivity,
  type ProjectId,
  PutActivity,
  type SendV1,
  servingProvider,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import { apnsMaxBytes, renderApns } from "@herald/payload";
import { changeActivity, endActivity, firstSendId, newActivityRecord, newestSendId } from "@herald/rules";
import { project, projectOrDevice } from "../auth/caller.ts";
import { targetFor } from "../auth/shown-to.ts";
import type { RouteDeps } from "../deps.ts";
import { accepted, ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import type { Idempotent } from "../idempotency/idempotency.ts";
import { parsedSend } from "../sending/accept-notification.ts";
import { activityHint, sendsOf, versionOf } from "../sending/activities.ts";
import { refuseLargeStart } from "../sending/propose.ts";
import { type ChargeDeps, chargeState } from "../sending/send-operation.ts";
import { channelViews } from "../views/activity-channels.ts";

/** Of a body, whatever the order of its keys was when it was parsed: a repeat sends the same text. */
const digest = (body: unknown): string => createHash("sha256").update(JSON.stringify(body)).digest("base64url");

const invalid = (problem: string): HeraldError => new HeraldError("validation-failed", problem);

const gone = () => notFound("activity-not-found", "id", activityHint);

/** Of Apple's id of a channel, which is not known yet. */
const maxChannelLength = 66;

/** Throws validation-failed for a payload that is larger than Apple accepts. */
const checkPayloads = ({ openTokens }: Pick<RouteDeps, "openTokens">, sends: readonly SendV1[], via?: string): void => {
  const channel = via && "x".repeat(maxChannelLength);
  for (const { content, projectId, notificationId } of sends) {
    const { body } = renderApns(content, { projectId, notificationId, channel });
    const bytes = Buffer.byteLength(body("x".repeat(openTokens.length)));
    if (bytes > apnsMaxBytes)
      throw invalid(
        `activity: renders to ${bytes} bytes for ${content.activity?.event === "start" ? "its start" : "ios"}, at most ${apnsMaxBytes} fit: shorten attributes or content_state`,
      );
  }
};

/** Publishes the sends of a record's newest version. Repeatable: their ids follow from the record. */
const publishVersion = async (
  deps: Pick<RouteDeps, "activities" | "sends">,
  { projectId, id }: ActivityKey,
  record: ActivityRecord,
) => {
  const sends = sendsOf(projectId, id, record).map(parsedSend);
  if (sends.length > 0) await deps.sends.publishAgain(sends);
  if (record.channels) await deps.activities.broadcast({ projectId, id }, record);
  return accepted(versionOf({ projectId, id }, record));
};

/** A version counts as one send. Throws quota-exceeded. */
const charged = async <Result>(
  deps: ChargeDeps,
  projectId: ProjectId,
  work: () => Promise<{ readonly result: Result; readonly isNew: boolean }>,
): Promise<Result> => {
  const { granted, refusal, refund } = await chargeState(deps, projectId);
  if (granted === 0) throw refusal;
  let isNew = false;
  try {
    const done = await work();
    isNew = done.isNew;
    return done.result;
  } finally {
    if (!isNew) await refund();
  }
};

const checkEnd = ({ ends_at: endsAt }: NewActivity, now: Date): void => {
  if (endsAt === undefined) return;
  const aheadMs = Date.parse(endsAt) - now.getTime();
  if (aheadMs <= 0) throw invalid("activity.ends_at: must be in the future");
  if (aheadMs > activityLimits.longestMs)
    throw invalid("activity.ends_at: must be at most 8 hours ahead: iOS ends an activity by then");
};

/** Performs a write once for its Idempotency-Key. `isRetry`: an earlier attempt may have written a version. */
const once = (
  { now }: Pick<RouteDeps, "now">,
  idempotent: Idempotent,
  perform: (isRetry: boolean, at: Date) => Promise<ReturnType<typeof accepted<ActivityVersion>>>,
) => {
  const asked = now();
  return idempotent({ perform: ({ at }) => perform(at < asked, at) });
};

const answered = {
  responses: { 202: { description: "The version is on disk", schema: dataOf(ActivityVersion) } },
} as const;

const tooFast = (waitMs: number): HeraldError => {
  const retryAfterSeconds = Math.ceil(waitMs / 1_000);
  return new HeraldError(
    "rate-limited",
    `activity: may have one version a second, and ${activityLimits.burst} at once; retry in ${retryAfterSeconds} s`,
    { retryAfterSeconds },
  );
};

const ended = () => new HeraldError("activity-ended", "activity: has ended, and takes no further state");

const iso = (at: number): string => new Date(at).toISOString();

const timesOf = ({ createdAt, writtenAt, endsAt, end }: ActivityRecord) => ({
  created_at: iso(createdAt),
  updated_at: iso(writtenAt),
  ends_at: iso(endsAt),
  ...(end && { ended_at: iso(end.at) }),
  ...(end?.dismissAt !== undefined && { dismiss_at: end.dismissAt }),
});

const stateOf = (id: ActivityId, record: ActivityRecord) => ({
  id,
  status: record.end ? ("ended" as const) : ("active" as const),
  version: record.version,
  attributes_type: record.attributesType,
  attributes: record.attributes,
  content_state: record.contentState,
  ...(record.staleAt !== undefined && { stale_at: record.staleAt }),
  ...(record.relevance !== undefined && { relevance: record.relevance }),
  ...timesOf(record),
});

/** Less than an app waits for an answer. */
const channelWaitMs = 2_000;

/** The channel with which an app starts an activity itself. Undefined if it is not known in time: then the app uses a token. */
const channelFor = async (
  { sendRequest }: Pick<RouteDeps, "sendRequest">,
  { projectId, id: activityId }: ActivityKey,
  { via, end }: ActivityRecord,
  device: Device,
): Promise<string | undefined> => {
  const { app, environment } = device;
  if (via === undefined || end || device.platform !== "ios" || servingProvider(device) !== "apns") return undefined;
  const asked = { projectId, activityId, app, environment };
  const options = { timeoutMs: channelWaitMs };
  return (await sendRequest(activityRequests.channel, asked, options).catch(() => undefined))?.id;
};

const activityView = (key: ActivityKey, record: ActivityRecord): Activity => {
  const { targets, start, via, app, kind, labels, priority, sequence, channels } = record;
  const shown = { via, app, kind, labels, priority, sequence, channels: channels && channelViews(channels) };
  return {
    ...stateOf(key.id, record),
    targets,
    start,
    ...Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined)),
    notification_id: newestSendId(key, record),
  };
};

export const activityRoutes = [
  defineRoute("putActivity", "put /api/v1/activities/{activity}", {
    summary: "Start a Live Activity",
    description:
      "Names a Live Activity and sends its state to the iPhones of the targets. With `start` (the default) iOS starts it where the app has a token for that; otherwise the app starts it. It ends at `ends_at`, at most 8 hours later. The same body again is the same request; another body for a known id is a 409.",
    access: project("send"),
    creates: "activity",
    body: PutActivity,
    ...answered,
    errors: ["activity-exists", "approval-required", "quota-exceeded", "queue-full"],
    handle: async (deps, { caller: { projectId }, params: { activity: id }, body: { activity }, idempotent }) => {
      const key = { projectId, id };
      const put = digest(activity);
      return once(deps, idempotent, async () => {
        const known = await deps.activities.find(key);
        if (known && known.put !== put)
          throw new HeraldError("activity-exists", `id: ${id} is the id of another activity; an id is used once`);
        if (known?.version === 1) return publishVersion(deps, key, known);
        if (known) return accepted({ id, version: 1, notification_id: firstSendId(key, known) });
        const now = deps.now();
        checkEnd(activity, now);
        const record = newActivityRecord(activity, put, now);
        const sends = sendsOf(projectId, id, record);
        checkPayloads(deps, sends, record.via);
        await refuseLargeStart(deps, sends);
        return charged(deps, projectId, async () => {
          const stored = await deps.activities.create(key, record);
          if (stored.put !== put)
            throw new HeraldError("activity-exists", `id: ${id} is the id of another activity; an id is used once`);
          return { result: await publishVersion(deps, key, stored), isNew: stored === record };
        });
      });
    },
  }),
  defineRoute("patchActivity", "patch /api/v1/activities/{activity}", {
    summary: "Send a new state of a Live Activity",
    description:
      "The whole state: iOS replaces the last one. Devices show the newest version, in whatever order pushes arrive. A state with a lower `sequence` than the newest is not written, and the newest version is the answer; the newest `sequence` again sends that version again. One version a second, 5 at once.",
    access: project("send"),
    body: PatchActivity,
    ...answered,
    errors: ["activity-ended", "quota-exceeded"],
    handle: async (deps, { caller: { projectId }, params: { activity: id }, body: { activity }, idempotent }) => {
      const key = { projectId, id };
      return once(deps, idempotent, (isRetry, at) =>
        charged(deps, projectId, async () => {
          const written = await deps.activities.write(
            key,
            (record) =>
              // An earlier attempt may have written it, and a later state must not be undone.
              isRetry && record.writtenAt >= at.getTime()
                ? { kind: "unchanged" }
                : changeActivity(record, activity, deps.now()),
            (record) => checkPayloads(deps, sendsOf(projectId, id, record)),
          );
          if (written.kind === "ended") throw ended();
          if (written.kind === "too-fast") throw tooFast(written.waitMs);
          const result = await publishVersion(deps, key, written.record);
          return { result, isNew: written.kind === "written" };
        }),
      );
    },
  }),
  defineRoute("endActivity", "post /api/v1/activities/{activity}/end", {
    summary: "End a Live Activity",
    description:
      "Sends the last state, after which no other is accepted. A failed push is retried for 4 hours. The same body again is the same request.",
    access: project("send"),
    body: EndActivity,
    ...answered,
    errors: ["activity-ended", "quota-exceeded"],
    handle: async (deps, { caller: { projectId }, params: { activity: id }, body: { activity }, idempotent }) => {
      const key = { projectId, id };
      const body = digest(activity);
      const { dismiss_at: dismissAt } = activity;
      if (dismissAt !== undefined && Date.parse(dismissAt) > deps.now().getTime() + activityLimits.dismissMs)
        throw invalid("activity.dismiss_at: must be at most 4 hours ahead: iOS removes the activity by then");
      return once(deps, idempotent, () =>
        charged(deps, projectId, async () => {
          const written = await deps.activities.write(
            key,
            (record) => endActivity(key, record, activity, deps.now(), body),
            (record) => checkPayloads(deps, sendsOf(projectId, id, record)),
          );
          if (written.kind === "ended") throw ended();
          if (written.kind === "too-fast") throw tooFast(written.waitMs);
          const result = await publishVersion(deps, key, written.record);
          await deps.activities.release(key);
          return { result, isNew: written.kind === "written" };
        }),
      );
    },
  }),
  defineRoute("getActivity", "get /api/v1/activities/{activity}", {
    summary: "Read a Live Activity",
    description:
      "For 14 hours after its start. There is no list: the notifications of activities are found by kind, label and `push_type`.",
    access: project("read"),
    responses: { 200: { description: "The activity with its newest state", schema: dataOf(Activity) } },
    handle: async ({ activities }, { caller, params: { activity: id } }) => {
      const key = { projectId: caller.projectId, id };
      const record = await activities.find(key);
      if (!record) throw gone();
      const view = activityView(key, record);
      return ok({ ...view, targets: view.targets.map((target) => targetFor(caller, target)) });
    },
  }),
  defineRoute("getDeviceActivity", "get /api/v1/devices/{id}/activities/{activity}", {
    tag: "Notifications",
    summary: "Read the state of a Live Activity as a device",
    description: "For the app, when it starts or has missed a push. A 404 unless the device matches the targets.",
    access: projectOrDevice("devices"),
    responses: { 200: { description: "The newest state", schema: dataOf(DeviceActivity) } },
    errors: ["device-not-found"],
    handle: async ({ activities, sendRequest }, { caller, params: { id: deviceId, activity } }) => {
      const { projectId } = caller;
      const key = { projectId, id: activity };
      const record = await activities.find(key);
      if (!record) throw gone();
      const { targets, app } = record;
      const found = await sendRequest(audienceRequests.explain, {
        projectId,
        deviceId,
        targets,
        ...(app !== undefined && { app }),
      });
      if (found.matched === undefined || found.otherApp) throw gone();
      const id = await channelFor({ sendRequest }, key, record, found.device);
      // A version that is written after this read is broadcast, because its writer sees the channel, too.
      const newest = id === undefined ? record : await activities.find(key);
      if (newest?.createdAt !== record.createdAt) throw gone();
      const isFollowed = !newest.end && Object.values(newest.channels ?? {}).some((channel) => channel.id === id);
      const channel = id !== undefined && isFollowed && { channel_id: id };
      return ok({ ...stateOf(activity, newest), timestamp: newest.timestamp, ...channel });
    },
  }),
];
