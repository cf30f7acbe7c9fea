import {
  type DeviceId,
  type EntryProblem,
  type ProjectId,
  PutDevice,
  servingProvider,
  vapidKeyId,
} from "@herald/contracts";
import { createYieldIfDue, endpointProblem, HeraldError, hasCode, parseBody } from "@herald/kit";
import { readIdentifiers } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { eventContext, type TopicRow } from "../domain/registry-events.ts";
import type { RegisterDeps, Registered, WantedPut } from "./register-device.ts";
import { registerTogether } from "./register-together.ts";
import { ensureTopics } from "./topics.ts";

export type Refused = { readonly result: "refused"; readonly problems: EntryProblem[] };

export type PutResult = { readonly result: "created" | "updated" | "unchanged"; readonly id: DeviceId } | Refused;

export type PutDevicesDeps = RegisterDeps & Pick<Deps, "webPush">;

/** A valid device, or why it is refused. `newId`: its id if it is new. */
export type ParsedDevice = { readonly device: PutDevice; readonly newId?: DeviceId } | Refused;

/** Further problems of one device would only make the result longer. */
const maxProblems = 10;

/** The result for a refused device. Throws every other error, because it concerns all devices. */
const refusedFor = (error: unknown): Refused => {
  if (!hasCode(error, "validation-failed", "device-quota-exceeded")) throw error;
  return {
    result: "refused",
    problems: error.faults.slice(0, maxProblems).map((fault) => ({
      field: fault.name.replace(/^device\./, ""),
      detail: fault.detail,
      code: fault.code ?? error.code,
    })),
  };
};

/** Validates a device from a request or a file. */
const parseDevice = (sent: unknown): ParsedDevice => {
  try {
    return { device: parseBody(PutDevice, sent, { max: maxProblems }) };
  } catch (error) {
    return refusedFor(error);
  }
};

/** Reads and validates devices, and lets other work of the process run in between. `read`: the device of an entry, or why there is none. */
export const parseDevices = async <Entry>(
  entries: readonly Entry[],
  read: (entry: Entry) => { readonly device: unknown } | Pick<Refused, "problems">,
): Promise<ParsedDevice[]> => {
  const yieldIfDue = createYieldIfDue();
  const parsed: ParsedDevice[] = [];
  for (const entry of entries) {
    const found = read(entry);
    parsed.push("device" in found ? parseDevice(found.device) : { result: "refused", problems: found.problems });
    await yieldIfDue();
  }
  return parsed;
};

type WebPush = Awaited<ReturnType<Deps["webPush"]>>;

/**
 * The keys of a Web Push device. Refuses an endpoint to which nothing can be sent, and a VAPID key that the project lacks: the push service
 * would refuse every push.
 */
const subscribedWith = ({ token, keys, vapid_key_id: named }: PutDevice, webPush: WebPush) => {
  const problem = endpointProblem(token, webPush);
  const known = webPush?.vapidKeys;
  if (problem !== undefined) throw new HeraldError("validation-failed", `token: ${problem}`);
  const id = named ?? (keys?.vapid_key === undefined ? undefined : vapidKeyId(keys.vapid_key));
  if (id !== undefined && known !== undefined && !known.some((key) => key.id === id))
    throw new HeraldError(
      "validation-failed",
      `${named === undefined ? "keys.vapid_key" : "vapid_key_id"}: is not a key of this project; GET /api/v1/webpush-key returns the current one`,
    );
  const current = known?.find(({ status }) => status === "current")?.id;
  return {
    ...(keys && { keys: { p256dh: keys.p256dh, auth: keys.auth } }),
    ...(id !== undefined && { vapidKeyId: id }),
    ...(current !== undefined && { currentVapidKeyId: current }),
  };
};

type Shared = { readonly webPush: WebPush; readonly dryRun: boolean; readonly ensured: ReadonlyMap<string, TopicRow> };

/** The registration of a device, or why it is refused. */
const readyOf = (projectId: ProjectId, parsed: ParsedDevice, { webPush, ...shared }: Shared): WantedPut | Refused => {
  if ("result" in parsed) return parsed;
  const { device, newId } = parsed;
  const { user_id: userId, last_seen_at: lastSeenAt } = device;
  const { identifiers, problems } = readIdentifiers(device.identifiers ?? {});
  try {
    if (problems.length > 0)
      throw new HeraldError(
        "validation-failed",
        problems.map(({ field, message }) => `${field}: ${message}`),
      );
    return {
      projectId,
      platform: device.platform,
      provider: device.provider,
      installationId: device.installation_id,
      token: device.token,
      metadata: device.metadata,
      identifiers,
      environment: device.environment,
      app: device.app,
      tokenKind: device.token_kind,
      capabilities: device.capabilities,
      ...(servingProvider(device) === "webpush" && subscribedWith(device, webPush)),
      topics: device.topics ?? [],
      user: userId === undefined ? undefined : { by: "project", userId },
      byProject: true,
      put: { status: device.status, lastSeenAt: lastSeenAt === undefined ? undefined : new Date(lastSeenAt) },
      newId,
      ...shared,
    };
  } catch (error) {
    return refusedFor(error);
  }
};

/** @throws errors that are not a refusal of this device: they concern all devices. */
const resultOf = (settled: PromiseSettledResult<Registered> | undefined): PutResult => {
  if (settled?.status !== "fulfilled") return refusedFor(settled?.reason);
  const { device, created, changed } = settled.value;
  return { result: created ? "created" : changed ? "updated" : "unchanged", id: device._id };
};

/**
 * Starts to write devices that the project's backend sent. Resolves when each has its turn after earlier devices of its push token.
 * `results` is in the order of the devices. Creates and rotates no credential. Repeats change nothing. A dry run writes nothing.
 * @throws HeraldError when a dependency is unavailable. `results` rejects with `project-not-found`, with `topic-exists` while one of the
 * topics is being deleted, or when a dependency is unavailable; some of the devices may be written then.
 */
export const startPutDevices = async (
  deps: PutDevicesDeps,
  projectId: ProjectId,
  devices: readonly ParsedDevice[],
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<{ readonly results: Promise<PutResult[]> }> => {
  const valid = devices.flatMap((one) => ("device" in one ? [one.device] : []));
  const names = [...new Set(valid.flatMap(({ topics = [] }) => topics))];
  const context = eventContext(projectId, deps.now());
  const ensure = async () => (names.length === 0 || dryRun ? new Map() : ensureTopics(deps, context, names));
  const [webPush, ensured] = await Promise.all([
    valid.some((device) => servingProvider(device) === "webpush") ? deps.webPush(projectId) : undefined,
    ensure(),
  ]);
  const shared = { webPush, dryRun, ensured };
  const ready = devices.map((one) => readyOf(projectId, one, shared));
  const wanted = ready.flatMap((one) => ("result" in one ? [] : one));
  const finish = async (registering: Promise<PromiseSettledResult<Registered>[]>): Promise<PutResult[]> => {
    const registered = await registering;
    const results = registered.map(resultOf);
    // Creates topics again that were deleted meanwhile.
    await ensure();
    const resultFor = new Map(wanted.map((one, at) => [one, results[at]]));
    return ready.flatMap((one) => ("result" in one ? one : (resultFor.get(one) ?? [])));
  };
  const results = finish(registerTogether(deps, projectId, wanted));
  // The caller awaits `results` later and gets the error then.
  results.catch(() => undefined);
  return { results };
};

/** Like {@link startPutDevices}, but resolves when the devices are written. @throws HeraldError as it and its `results` do. */
export const putDevices = async (...given: Parameters<typeof startPutDevices>): Promise<PutResult[]> =>
  (await startPutDevices(...given)).results;
