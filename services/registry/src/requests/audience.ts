import { handleRequest, type RequestListener } from "@herald/bus";
import {
  CountAudience,
  CountVapidKeys,
  ExplainDevice,
  type Platform,
  type ProjectId,
  ResolveSends,
  type Target,
} from "@herald/contracts";
import { createYieldIfDue, existing } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { assign, planOf, type SendTargets, wantedKeys } from "../domain/audience.ts";
import { type Candidate, matches } from "../domain/matches.ts";
import { type BucketRange, nextPage, partitionBatches } from "../domain/partition-batches.ts";
import { deviceNotFound, deviceView } from "./change-device.ts";
import {
  candidateOf,
  firstRange,
  mayBeReachedTwice,
  parseQuery,
  parseTargets,
  partitionableOf,
  reachedTwice,
  readPage,
} from "./read-audience.ts";

/** Reads page after page, as an expansion does: only one page is in memory, and each device is in one page. */
const count = async ({ audience }: Deps, projectId: ProjectId, sources: readonly string[], signal: AbortSignal) => {
  const query = await parseQuery(projectId, sources);
  const devices: Record<Platform, number> = { ios: 0, android: 0, web: 0 };
  const matched = new Set<number>();
  let range: BucketRange | undefined = await firstRange(audience, query);
  while (range) {
    signal.throwIfAborted();
    const page = await readPage(audience, query, range);
    for (const { platform } of page.devices) devices[platform]++;
    for (const at of page.matched) matched.add(at);
    range = nextPage(range);
  }
  return { devices, unmatched: sources.filter((_, at) => !matched.has(at)) };
};

const firstMatch = async (targets: readonly Target[], device: Candidate): Promise<Target | undefined> => {
  const yieldIfDue = createYieldIfDue();
  for (const target of targets) {
    await yieldIfDue();
    if (matches(target, device)) return target;
  }
  return undefined;
};

/** Finds the devices of small sends: one query for all sends of a project, and one per send if they have too many devices. */
const resolve = async (
  { audience }: Deps,
  sends: readonly SendTargets[],
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
) => {
  const plans = sends.map(planOf);
  const limitOfAll = (limit + 1) * sends.length;
  const found = new Map(
    await Promise.all(
      wantedKeys(plans).map(async (keys) => [keys.projectId, await audience.named(keys, limitOfAll)] as const),
    ),
  );
  const namedAlone = async (plan: (typeof plans)[number]) => {
    signal.throwIfAborted();
    const [keys] = wantedKeys([plan]);
    return keys && audience.named(keys, limit);
  };
  const resolveOne = async ({ targets }: SendTargets, plan: (typeof plans)[number]) => {
    if (!plan) return null;
    const rows = found.get(plan.projectId) ?? (await namedAlone(plan));
    if (!rows) return null;
    const { devices, matched } = assign(plan, rows);
    if (devices.length > limit) return null;
    signal.throwIfAborted();
    const twice = devices.some(mayBeReachedTwice)
      ? await reachedTwice(audience, { projectId: plan.projectId, targets: await parseTargets(targets) }, devices)
      : undefined;
    const reached = twice ? devices.filter(({ _id }) => !twice.has(_id)) : devices;
    return {
      batches: partitionBatches(reached.map(partitionableOf)),
      unmatched: targets.filter((_, at) => !matched.has(at)),
    };
  };
  return { sends: await Promise.all(sends.map((send, at) => resolveOne(send, plans[at]))) };
};

export const handleAudienceRequests = (deps: Deps): RequestListener[] => [
  handleRequest(deps.bus, CountAudience, ({ projectId, targets }, { signal }) =>
    count(deps, projectId, targets, signal),
  ),

  handleRequest(deps.bus, ResolveSends, ({ sends, limit }, { signal }) => resolve(deps, sends, { limit, signal })),

  handleRequest(deps.bus, CountVapidKeys, async ({ projectId }) => {
    const counts = await deps.devices.countByVapidKey(projectId);
    return { subscriptions: [...counts].map(([keyId, devices]) => ({ ...(keyId && { keyId }), devices })) };
  }),

  handleRequest(deps.bus, ExplainDevice, async ({ projectId, deviceId, targets }) => {
    const device = existing(await deps.devices.find(projectId, deviceId), deviceNotFound);
    const parsed = await parseTargets(targets);
    const matched = await firstMatch(parsed, candidateOf(device));
    const twice = matched && (await reachedTwice(deps.audience, { projectId, targets: parsed }, [device]));
    const reachedThrough = twice?.get(deviceId);
    return {
      device: deviceView(device),
      ...(matched && { matched: matched.source }),
      ...(reachedThrough && { reachedThrough }),
    };
  }),
];
