import {
  type DeviceId,
  newDeviceCredential,
  newDeviceId,
  otherProvider,
  type Platform,
  type ProjectId,
  pushTokenHash,
  secretHash,
  servingProvider,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { applyRegistration, newDevice, type Registration, seenEveryMs } from "../domain/device-change.ts";
import {
  deviceRegistered,
  deviceSubscribed,
  type EventContext,
  eventContext,
  eventsOfChange,
} from "../domain/registry-events.ts";
import { type DeviceDocument, newDeviceDocument } from "../stores/device-document.ts";
import { requireValid } from "./change-device.ts";
import { conflict, retryOnConflict } from "./retry-on-conflict.ts";
import { withTopics } from "./with-topics.ts";

type Wanted = Registration & {
  readonly projectId: ProjectId;
  readonly platform: Platform;
  /** The device's token until now; counts only if proven, see `provesRotation`. */
  readonly previousToken?: string | undefined;
  /** The device whose credential the request contains. */
  readonly provenDevice?: DeviceId | undefined;
  /** False: only known devices may register. */
  readonly mayCreate?: boolean | undefined;
};

export type Registered = { readonly device: DeviceDocument; readonly created: boolean; readonly credential?: string };

/**
 * Registers a new or known device. A known device gets a new credential only with `rotate`.
 * @throws HeraldError `project-not-found`, `token-held`, `topic-exists`, `user-token-used`, `rate-limited`, `device-quota-exceeded`, or
 * `validation-failed` for merged data.
 */
export const registerDevice = (deps: Deps, wanted: Wanted, rotate: boolean): Promise<Registered> => {
  const { projectId, platform, token } = wanted;
  const key = `${projectId}/${platform}/${servingProvider(wanted)}/${pushTokenHash(token)}`;
  return deps.keyedMutex(key, () =>
    retryOnConflict(async () => {
      const [device, exists] = await Promise.all([findDevice(deps, wanted), deps.projects.exists(projectId)]);
      if (!exists) throw new HeraldError("project-not-found", "project: there is none of this id");
      const context = eventContext(projectId, deps.now());
      return device ? registerKnown(deps, wanted, device, context, rotate) : registerNew(deps, wanted, context);
    }),
  );
};

/**
 * Whether a device may continue with a new push token. Knowing the old push token proves nothing: without the device's credential or
 * a token of its user the request registers a new device.
 */
const provesRotation = ({ provenDevice, user }: Wanted, previous: DeviceDocument): boolean =>
  previous._id === provenDevice || (user?.by === "token" && user.userId === previous.userId);

/** The device that has the token, else the one that had the previous token. */
const findDevice = async ({ devices }: Deps, wanted: Wanted): Promise<DeviceDocument | undefined> => {
  const { projectId, platform, token, previousToken } = wanted;
  const served = { platform, ...otherProvider(wanted) };
  const [holder, named] = await Promise.all([
    devices.findByToken(projectId, served, token),
    previousToken === undefined || previousToken === token
      ? undefined
      : devices.findByToken(projectId, served, previousToken),
  ]);
  const previous = named && provesRotation(wanted, named) ? named : undefined;
  if (holder && previous) throw new HeraldError("token-held", "identifier: another device holds this push token");
  return holder ?? previous;
};

const registerKnown = async (
  deps: Deps,
  wanted: Wanted,
  before: DeviceDocument,
  context: EventContext,
  rotate: boolean,
): Promise<Registered | typeof conflict> => {
  const plan = requireValid(applyRegistration(before, wanted, context.at));
  if (plan.same && !rotate && before.doubtedAt === undefined) {
    recordLastSeen(deps, before, context);
    return { device: before, created: false };
  }
  const credential = rotate ? newDeviceCredential(context.projectId, before._id) : undefined;
  return withTopics(deps, context, plan.subscribed, async (subscribed) => {
    const events = eventsOfChange(context, before._id, {
      changed: plan.changed,
      status: plan.state.status,
      subscribed,
    });
    const device = await deps.devices.change(before, plan.state, {
      at: context.at,
      events,
      ...(credential && { credentialHash: secretHash(credential) }),
    });
    if (device === "conflict" || device === "token-held") return conflict;
    if (events.length > 0) deps.publishQueue.devices(context.projectId, [device._id]);
    return { device, created: false, ...(credential && { credential }) };
  });
};

/** Not awaited: if it fails, the next registration writes it. */
const recordLastSeen = ({ devices }: Deps, { _id, tokenUpdatedAt }: DeviceDocument, context: EventContext): void => {
  const { projectId, at } = context;
  if (at.getTime() - tokenUpdatedAt.getTime() >= seenEveryMs) devices.seen(projectId, _id, at).catch(() => undefined);
};

const registerNew = async (
  deps: Deps,
  wanted: Wanted,
  context: EventContext,
): Promise<Registered | typeof conflict> => {
  const { projectId, at } = context;
  const { platform, token } = wanted;
  const plan = requireValid(newDevice(platform, wanted, at));
  if (wanted.mayCreate === false)
    throw new HeraldError("rate-limited", "identifier: too many new devices have registered from this address");
  await deps.deviceQuota.take(projectId);
  return withTopics(deps, context, plan.subscribed, async (subscribed) => {
    const id = newDeviceId(at);
    const credential = newDeviceCredential(projectId, id);
    const device = newDeviceDocument(projectId, id, plan.state, { credentialHash: secretHash(credential), at });
    const events = [
      deviceRegistered(context, id, { platform, token_hash: pushTokenHash(token) }),
      ...subscribed.map((topic) => deviceSubscribed(context, id, topic)),
    ];
    return (await deps.devices.insert(device, events)) ? { device, created: true, credential } : conflict;
  });
};
