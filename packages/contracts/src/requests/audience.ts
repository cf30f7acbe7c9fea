import { z } from "zod";
import { AskedRules } from "../asked-rules.ts";
import { Recipient } from "../deliver-batch.ts";
import { defineRequests, oneRequest } from "../envelope.ts";
import { Device } from "../http/v1/devices.ts";
import { LocalTime } from "../http/v1/local-time.ts";
import { QuietHours } from "../http/v1/quiet-hours.ts";
import { DeviceId, maxGroupSize, ProjectId } from "../ids.ts";
import { plainAudiences } from "../plain-batch.ts";
import { AppId, Platform, Provider } from "../platforms.ts";
import { PushKey } from "../push-types.ts";

const project = { projectId: ProjectId };
const device = { ...project, deviceId: DeviceId };

const targets = z.array(z.string()).min(1).max(1000);
/** Which devices of its targets a send is for; absent: all. `push`: those with a token of the push type. `without`: those without that one. */
const audience = {
  targets,
  app: AppId.optional(),
  push: PushKey.optional(),
  without: PushKey.optional(),
  rules: AskedRules.optional(),
};
const platformCounts = z.object({ ios: z.number().int(), android: z.number().int(), web: z.number().int() });

/** The rules of a send that is not stored, for {@link audienceRequests.count}. `zone`: of devices without one. */
export const CountedRules = z.object({
  hours: QuietHours.optional(),
  /** Those of users count, too. */
  ownHours: z.boolean(),
  zone: z.string(),
  /** When it would be sent, unless it has a local time. */
  at: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  local: LocalTime.optional(),
});
export type CountedRules = z.infer<typeof CountedRules>;

const byText = z.record(z.string(), z.number().int());

/** The devices of one platform and provider that a send reaches, sorted by id. */
const ResolvedBatch = z.object({ platform: Platform, provider: Provider.optional(), devices: z.array(Recipient) });

export const audienceRequests = defineRequests("registry.audience", {
  /** The exact number of active devices that match the targets, each counted once. For dry runs; costs as much as an expansion. */
  count: oneRequest(
    /** `byZone`: also by time zone. */
    { ...project, ...audience, byZone: z.boolean().optional(), countedRules: CountedRules.optional() },
    z.object({
      devices: platformCounts,
      unmatched: z.array(z.string()),
      zones: byText.optional(),
      /** With `countedRules`: those of `devices` that would get nothing, by reason, and those that would get it later, by the time. */
      skips: byText.optional(),
      delayed: byText.optional(),
    }),
    () => true,
  ),
  /** How many active devices the targets have, estimated for a large audience. */
  size: oneRequest({ ...project, ...audience }, z.object({ devices: z.number().int() })),
  /** The time zones that devices of the targets may have: those of the devices for a small audience, otherwise those of all the project's. */
  zones: oneRequest({ ...project, ...audience }, z.object({ zones: z.array(z.string()) })),
  /** The recipients of small sends, in the order of the request. `null`: more devices than `limit`, or targets without an index. */
  resolve: oneRequest(
    {
      ...project,
      sends: z.array(z.object(audience)).min(1).max(maxGroupSize),
      limit: z.number().int().min(1),
    },
    z.object({
      sends: z.array(z.object({ batches: z.array(ResolvedBatch), unmatched: z.array(z.string()) }).nullable()),
    }),
    undefined,
    plainAudiences(Recipient),
  ),
  /** The number of active Web Push subscriptions per key. Subscriptions without `keyId` are older than key ids. */
  countVapidKeys: oneRequest(
    project,
    z.object({ subscriptions: z.array(z.object({ keyId: z.string().optional(), devices: z.number().int() })) }),
    () => true,
  ),
  /** Whether the targets match one device in its current state, and which entry does. */
  explain: oneRequest(
    // A notification with recipients has no targets.
    { ...device, ...audience, targets: z.array(z.string()).max(1000) },
    z.object({
      device: Device,
      /** The first entry that matches, as sent, even if the device is inactive or of another app. */
      matched: z.string().optional(),
      /** It has no token of the push type. */
      noToken: z.literal(true).optional(),
      /** The send is for another app. */
      otherApp: z.literal(true).optional(),
      /** The device of the same app installation that gets the push instead: its platform's own provider serves it. */
      reachedThrough: DeviceId.optional(),
    }),
  ),
  /**
   * The devices, of up to 1,000, that may no longer get their waiting notifications: they are deleted, inactive, or have another user than
   * when the audience was read. `userId` is that earlier user; absent if it does not matter. `kind`: the others that do not get it now by
   * choice are `muted`.
   */
  check: oneRequest(
    {
      ...project,
      devices: z
        .array(z.object({ id: DeviceId, userId: z.string().optional() }))
        .min(1)
        .max(1000),
      kind: AskedRules.shape.kind,
    },
    z.object({ moved: z.array(DeviceId), muted: z.array(DeviceId).optional() }),
  ),
});
