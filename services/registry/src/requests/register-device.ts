import { randomUUID } from "node:crypto";
import {
  type DeviceId,
  newDeviceCredential,
  newDeviceId,
  type Platform,
  type ProjectId,
  pushTokenHash,
  secretHash,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { newDevice, type Registration, registered, seenEveryMs } from "../domain/device-change.ts";
import { deviceRegistered, deviceSubscribed, eventsOfChange, type Occasion } from "../domain/registry-events.ts";
import type { DeviceQuota } from "../identity/device-quota.ts";
import type { KeyedMutex } from "../keyed-mutex.ts";
import { type DeviceDocument, deviceDocument } from "../stores/device-document.ts";
import type { DeviceStore } from "../stores/device-store.ts";
import type { ProjectStore } from "../stores/project-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import type { TopicStore } from "../stores/topic-store.ts";
import { allowed } from "./change-device.ts";
import { again, retryOnConflict } from "./retry-on-conflict.ts";
import { withTopics } from "./with-topics.ts";

export type RegistrationParts = {
  readonly devices: DeviceStore;
  readonly topics: TopicStore;
  readonly projects: ProjectStore;
  readonly announce: Announce;
  readonly keyedMutex: KeyedMutex;
  readonly deviceQuota: DeviceQuota;
  readonly now: () => Date;
};

type Wanted = Registration & {
  readonly projectId: ProjectId;
  readonly platform: Platform;
  /** The token that the device had until now, as who asks can prove: see `provesRotation`. */
  readonly previousToken?: string | undefined;
  /** The device whose credential came with the request. */
  readonly provenDevice?: DeviceId | undefined;
  /** False: only a device that is known may register. */
  readonly mayCreate?: boolean | undefined;
};

export type Registered = { readonly device: DeviceDocument; readonly created: boolean; readonly credential?: string };

/**
 * Finds or makes the device of a token, in the way that fits what there is. A known device gets a new credential only where
 * `rotate` says so; a new one always gets one.
 * @throws HeraldError `project-not-found`, `token-held`, `topic-exists`, `user-token-used`, `rate-limited`, `device-quota-exceeded`, or
 * `validation-failed` for what merging made of the data.
 */
export const registerDevice = (parts: RegistrationParts, wanted: Wanted, rotate: boolean): Promise<Registered> => {
  const { projectId, platform, token } = wanted;
  return parts.keyedMutex(`${projectId}/${platform}/${pushTokenHash(token)}`, () =>
    retryOnConflict(async () => {
      const [device, exists] = await Promise.all([findDevice(parts, wanted), parts.projects.exists(projectId)]);
      if (!exists) throw new HeraldError("project-not-found", "project: there is none of this id");
      const occasion = { projectId, at: parts.now(), newId: randomUUID };
      return device ? known(parts, wanted, device, occasion, rotate) : unknown(parts, wanted, occasion);
    }),
  );
};

/**
 * Whether a device may go on under a new push token. Who knows a push token has not proven to be its device, so without the device's
 * credential or a token of its user a new device registers, and inherits nothing.
 */
const provesRotation = ({ provenDevice, user }: Wanted, previous: DeviceDocument): boolean =>
  previous._id === provenDevice || (user?.by === "token" && user.userId === previous.userId);

/** The device that the request is about: the one that has the token, else the one that had the token before. */
const findDevice = async ({ devices }: RegistrationParts, wanted: Wanted): Promise<DeviceDocument | undefined> => {
  const { projectId, platform, token, previousToken } = wanted;
  const [holder, named] = await Promise.all([
    devices.findByToken(projectId, platform, token),
    previousToken === undefined || previousToken === token
      ? undefined
      : devices.findByToken(projectId, platform, previousToken),
  ]);
  const previous = named && provesRotation(wanted, named) ? named : undefined;
  if (holder && previous) throw new HeraldError("token-held", "identifier: another device holds this push token");
  return holder ?? previous;
};

const known = async (
  parts: RegistrationParts,
  wanted: Wanted,
  before: DeviceDocument,
  occasion: Occasion,
  rotate: boolean,
): Promise<Registered | typeof again> => {
  const plan = allowed(registered(before, wanted, occasion.at));
  if (plan.same && !rotate && before.doubtedAt === undefined) {
    noteSeen(parts, before, occasion);
    return { device: before, created: false };
  }
  const credential = rotate ? newDeviceCredential(occasion.projectId, before._id) : undefined;
  return withTopics(parts, occasion, plan.subscribed, async (subscribed) => {
    const events = eventsOfChange(occasion, before._id, {
      changed: plan.changed,
      status: plan.state.status,
      subscribed,
    });
    const device = await parts.devices.change(before, plan.state, {
      at: occasion.at,
      events,
      ...(credential && { credentialHash: secretHash(credential) }),
    });
    if (device === "conflict" || device === "token-held") return again;
    if (events.length > 0) parts.announce.devices(occasion.projectId, [device._id]);
    return { device, created: false, ...(credential && { credential }) };
  });
};

/** Nobody waits for it, and what is lost the next registration writes. */
const noteSeen = (
  { devices }: RegistrationParts,
  { _id, tokenUpdatedAt }: DeviceDocument,
  occasion: Occasion,
): void => {
  const { projectId, at } = occasion;
  if (at.getTime() - tokenUpdatedAt.getTime() >= seenEveryMs) devices.seen(projectId, _id, at).catch(() => undefined);
};

const unknown = async (
  parts: RegistrationParts,
  wanted: Wanted,
  occasion: Occasion,
): Promise<Registered | typeof again> => {
  const { projectId, at } = occasion;
  const { platform, token } = wanted;
  const plan = allowed(newDevice(platform, wanted, at));
  if (wanted.mayCreate === false)
    throw new HeraldError("rate-limited", "identifier: too many new devices have registered from this address");
  await parts.deviceQuota.take(projectId);
  return withTopics(parts, occasion, plan.subscribed, async (subscribed) => {
    const id = newDeviceId(at);
    const credential = newDeviceCredential(projectId, id);
    const device = deviceDocument(projectId, id, plan.state, { credentialHash: secretHash(credential), at });
    const events = [
      deviceRegistered(occasion, id, { platform, token_hash: pushTokenHash(token) }),
      ...subscribed.map((topic) => deviceSubscribed(occasion, id, topic)),
    ];
    return (await parts.devices.insert(device, events)) ? { device, created: true, credential } : again;
  });
};
