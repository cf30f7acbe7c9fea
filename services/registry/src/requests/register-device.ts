import {
  type DeviceId,
  newDeviceCredential,
  newDeviceId,
  type OutboxEvent,
  otherProvider,
  type Platform,
  type ProjectId,
  pushTokenHash,
  secretHash,
  servingProvider,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { applyRegistration, newDevice } from "../domain/device-change.ts";
import { provesUser, type Registration, seenEveryMs } from "../domain/device-state.ts";
import {
  deviceSubscribed,
  type EventContext,
  eventContext,
  eventsOfChange,
  registryEvent,
  type TopicRow,
} from "../domain/registry-events.ts";
import { unprovenPart } from "../domain/unproven-part.ts";
import { type DeviceDocument, newDeviceDocument } from "../stores/device-document.ts";
import { requireInstallationRoom, requireValid } from "./change-device.ts";
import { conflict, retryOnConflict } from "./concurrency.ts";
import { requireTopics, type TopicDeps, withTopics } from "./topics.ts";

export type WantedDevice = Registration & {
  readonly projectId: ProjectId;
  readonly platform: Platform;
  /** The device's token until now; counts only if proven, see `provesDevice`. */
  readonly previousToken?: string | undefined;
  /** The device whose credential the request contains. */
  readonly provenDevice?: DeviceId | undefined;
  /** False: only known devices may register. */
  readonly mayCreate?: boolean | undefined;
  /** The id of the device if it is new; absent: a random one. */
  readonly newId?: DeviceId | undefined;
  /** Its topics, if the caller has created the missing ones; absent: they are created here. */
  readonly ensured?: ReadonlyMap<string, TopicRow> | undefined;
  /** Writes nothing: the result says what would happen. */
  readonly dryRun?: boolean | undefined;
};

/** Which device gets a credential: every device, a new one and one that proves its user and has none, or no device. */
export type CredentialRule = "rotate" | "first" | "none";

export type Registered = {
  readonly device: DeviceDocument;
  readonly created: boolean;
  /** False: the device was known and nothing was written. */
  readonly changed: boolean;
  readonly credential?: string;
  /** Fields as in the API that a known device changes only with proof. */
  readonly ignored?: readonly string[];
};

type NewDeviceDeps = Pick<Deps, "deviceQuota" | "devices">;
type RegisterInTurnDeps = NewDeviceDeps & TopicDeps & Pick<Deps, "now" | "projects">;
export type RegisterDeps = RegisterInTurnDeps & Pick<Deps, "keyedMutex">;

/**
 * Registers a new or known device.
 * @throws HeraldError `project-not-found`, `token-in-use`, `topic-exists`, `user-token-used`, `rate-limited`, `device-quota-exceeded`, or
 * `validation-failed` for merged data.
 */
export const registerDevice = (
  deps: RegisterDeps,
  wanted: WantedDevice,
  credentials: CredentialRule,
): Promise<Registered> => deps.keyedMutex(registrationKey(wanted), () => registerInTurn(deps, wanted, credentials));

/** Registrations with the same key take turns. */
export const registrationKey = (wanted: Pick<WantedDevice, "projectId" | "platform" | "provider" | "token">): string =>
  `${wanted.projectId}/${wanted.platform}/${servingProvider(wanted)}/${pushTokenHash(wanted.token)}`;

/** {@link registerDevice} for a caller that holds the mutex of the push token. */
export const registerInTurn = (
  deps: RegisterInTurnDeps,
  wanted: WantedDevice,
  credentials: CredentialRule,
): Promise<Registered> => {
  const { projectId } = wanted;
  let { newId } = wanted;
  return retryOnConflict(async () => {
    const [device] = await Promise.all([findDevice(deps, wanted), deps.projects.requireExisting(projectId)]);
    const context = eventContext(projectId, deps.now());
    const registered = await (device
      ? registerKnown(deps, wanted, device, context, credentials)
      : registerNew(deps, { ...wanted, newId }, context, credentials));
    // A device with this id may have another token by now, so a second try needs another id.
    newId = undefined;
    return registered;
  });
};

/** Whether a client is the app on the device. Knowing the push token proves nothing: it takes the device's credential or a token of its user. */
const provesDevice = ({ provenDevice, user }: WantedDevice, device: DeviceDocument): boolean =>
  device._id === provenDevice || provesUser(user, device);

/** The device that has the token, otherwise the device that has the previous token. */
const findDevice = async (
  { devices }: Pick<Deps, "devices">,
  wanted: WantedDevice,
): Promise<DeviceDocument | undefined> => {
  const { projectId, platform, token, previousToken } = wanted;
  const served = { platform, ...otherProvider(wanted) };
  const [holder, named] = await Promise.all([
    devices.findByToken(projectId, served, token),
    previousToken === undefined || previousToken === token
      ? undefined
      : devices.findByToken(projectId, served, previousToken),
  ]);
  // Without proof the request registers a new device.
  const previous = named && provesDevice(wanted, named) ? named : undefined;
  if (holder && previous) throw new HeraldError("token-in-use", "identifier: another device holds this push token");
  return holder ?? previous;
};

/** Runs `write` with the topics that the caller has ensured, or ensures them before and after `write`. */
const subscribing = async <Result>(
  deps: TopicDeps,
  { ensured }: WantedDevice,
  context: EventContext,
  names: readonly string[],
  write: (topics: readonly TopicRow[]) => Promise<Result>,
): Promise<Result> =>
  ensured === undefined ? withTopics(deps, context, names, write) : write(requireTopics(ensured, names));

/** Applies a registration to the device that has its push token. */
export const registerKnown = async (
  deps: TopicDeps & Pick<Deps, "devices">,
  wanted: WantedDevice,
  before: DeviceDocument,
  context: EventContext,
  credentials: CredentialRule,
): Promise<Registered | typeof conflict> => {
  const isProven = wanted.byProject === true || provesDevice(wanted, before);
  const { registration, ignored } = isProven ? { registration: wanted, ignored: [] } : unprovenPart(wanted);
  const more = ignored.length > 0 ? { ignored } : {};
  const plan = requireValid(applyRegistration(before, registration, context.at));
  const isPut = wanted.put !== undefined;
  const issue = credentials === "rotate" || (credentials === "first" && isProven && before.credentialHash === "");
  if (plan.same && !issue && (isPut || before.doubtedAt === undefined)) {
    if (!isPut) recordLastSeen(deps, before, context);
    return { device: before, created: false, changed: false, ...more };
  }
  await requireInstallationRoom(deps, context.projectId, plan.state, before);
  if (wanted.dryRun) return { device: before, created: false, changed: true };
  const credential = issue ? newDeviceCredential(context.projectId, before._id) : undefined;
  return subscribing(deps, wanted, context, plan.subscribed, async (subscribed) => {
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
    if (device === "conflict" || device === "token-in-use") return conflict;
    if (events.length > 0) deps.publishSoon.devices(context.projectId, [device._id]);
    return { device, created: false, changed: true, ...(credential && { credential }), ...more };
  });
};

/** Not awaited: if it fails, the next registration writes it. */
const recordLastSeen = (
  { devices }: Pick<Deps, "devices">,
  { _id, tokenUpdatedAt }: DeviceDocument,
  context: EventContext,
): void => {
  const { projectId, at } = context;
  if (at.getTime() - tokenUpdatedAt.getTime() >= seenEveryMs) devices.seen(projectId, _id, at).catch(() => undefined);
};

/** A new device that is not stored yet. */
export type NewDevice = {
  readonly document: DeviceDocument;
  readonly events: readonly OutboxEvent[];
  readonly credential?: string;
};

/**
 * Plans a new device and counts it towards its project's quota. The result's `make` builds it, subscribed to existing topics.
 * @throws HeraldError `validation-failed`, `rate-limited`, `device-quota-exceeded`.
 */
const planNew = async (
  deps: NewDeviceDeps,
  wanted: WantedDevice,
  context: EventContext,
  credentials: CredentialRule,
) => {
  const { projectId, at } = context;
  const { platform, token } = wanted;
  const plan = requireValid(newDevice(platform, wanted, at));
  if (wanted.mayCreate === false)
    throw new HeraldError("rate-limited", "identifier: too many new devices have registered from this address");
  await requireInstallationRoom(deps, projectId, plan.state);
  if (!wanted.dryRun) await deps.deviceQuota.take(projectId);
  const id = wanted.newId ?? newDeviceId(at);
  const make = (topics: readonly TopicRow[]): NewDevice => {
    const credential = credentials === "none" ? undefined : newDeviceCredential(projectId, id);
    const credentialHash = credential === undefined ? "" : secretHash(credential);
    const document = newDeviceDocument(projectId, id, plan.state, { credentialHash, at });
    const { tokenHash = pushTokenHash(token) } = document;
    const events = [
      registryEvent(context, "DeviceRegisteredV1", id, { device_id: id, platform, token_hash: tokenHash }),
      ...topics.map((topic) => deviceSubscribed(context, id, topic)),
    ];
    return { document, events, ...(credential && { credential }) };
  };
  return { subscribed: plan.subscribed, make };
};

const created = ({ document, credential }: NewDevice): Registered => ({
  device: document,
  created: true,
  changed: true,
  ...(credential && { credential }),
});

const registerNew = async (
  deps: NewDeviceDeps & TopicDeps,
  wanted: WantedDevice,
  context: EventContext,
  credentials: CredentialRule,
): Promise<Registered | typeof conflict> => {
  const { subscribed, make } = await planNew(deps, wanted, context, credentials);
  if (wanted.dryRun) return created(make([]));
  return subscribing(deps, wanted, context, subscribed, async (topics) => {
    const device = make(topics);
    return (await deps.devices.insert(device)) ? created(device) : conflict;
  });
};

/** A device that the project's backend sent. It gets no credential, and its topics are ensured. */
export type WantedPut = WantedDevice & { readonly ensured: ReadonlyMap<string, TopicRow> };

/** A device that {@link registerDevice} would insert, for a caller that inserts many together. */
export const prepareNew = async (deps: NewDeviceDeps, wanted: WantedPut, context: EventContext): Promise<NewDevice> => {
  const { subscribed, make } = await planNew(deps, wanted, context, "none");
  return make(wanted.dryRun ? [] : requireTopics(wanted.ensured, subscribed));
};
