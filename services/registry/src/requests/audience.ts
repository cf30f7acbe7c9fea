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
import { createYieldIfDue } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { audienceOf } from "../domain/audience.ts";
import { type Candidate, matches } from "../domain/matches.ts";
import { partitionBatches } from "../domain/partition-batches.ts";
import { type BucketRange, nextPage } from "../domain/plan-pages.ts";
import { assign, planOf, type SendTargets, wantedKeys } from "../domain/resolve-sends.ts";
import { mayBeReachedTwice, reachedTwice } from "../handlers/one-per-installation.ts";
import { firstRange, parseTargets, partitionableOf, readPage } from "../handlers/read-audience.ts";
import { deviceNotFound } from "./change-device.ts";
import { deviceView } from "./views.ts";

/** Reads page after page, as an expansion does: only one page is in memory, and each device is in one page. */
const count = async ({ audience }: Deps, projectId: ProjectId, sources: readonly string[], signal: AbortSignal) => {
  const targets = await parseTargets(sources);
  const query = { projectId, targets, lookups: audienceOf(targets) };
  const devices: Record<Platform, number> = { ios: 0, android: 0, web: 0 };
  const matched = new Set<number>();
  let range: BucketRange | undefined = await firstRange(audience, projectId, query.lookups);
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

/** The devices of small sends: one query for all of a project, and one for each send if some have more devices than the limit. */
const resolve = async ({ audience }: Deps, sends: readonly SendTargets[], limit: number) => {
  const plans = sends.map(planOf);
  const limitOfAll = (limit + 1) * sends.length;
  const found = new Map(
    await Promise.all(
      wantedKeys(plans).map(async (keys) => [keys.projectId, await audience.named(keys, limitOfAll)] as const),
    ),
  );
  const resolveOne = async ({ targets }: SendTargets, plan: (typeof plans)[number]) => {
    const [own] = wantedKeys([plan]);
    if (!plan || !own) return null;
    const rows = found.get(plan.projectId) ?? (await audience.named(own, limit));
    if (!rows) return null;
    const { devices, matched } = assign(plan, rows);
    if (devices.length > limit) return null;
    const twice = devices.some(mayBeReachedTwice)
      ? await reachedTwice(audience, { projectId: plan.projectId, targets: await parseTargets(targets) }, devices)
      : undefined;
    const reached = twice ? devices.filter(({ _id }) => !twice.has(_id)) : devices;
    const batches = partitionBatches(reached.map(partitionableOf)).map((batch) => ({
      ...batch,
      devices: [...batch.devices],
    }));
    return { batches, unmatched: targets.filter((_, at) => !matched.has(at)) };
  };
  return { sends: await Promise.all(sends.map((send, at) => resolveOne(send, plans[at]))) };
};

export const handleAudienceRequests = (deps: Deps): RequestListener[] => [
  handleRequest(deps.bus, CountAudience, ({ projectId, targets }, { signal }) =>
    count(deps, projectId, targets, signal),
  ),

  handleRequest(deps.bus, ResolveSends, ({ sends, limit }) => resolve(deps, sends, limit)),

  handleRequest(deps.bus, CountVapidKeys, async ({ projectId }) => {
    const counts = await deps.devices.countByVapidKey(projectId);
    return { subscriptions: [...counts].map(([keyId, devices]) => ({ ...(keyId && { keyId }), devices })) };
  }),

  handleRequest(deps.bus, ExplainDevice, async ({ projectId, deviceId, targets }) => {
    const device = await deps.devices.find(projectId, deviceId);
    if (!device) throw deviceNotFound();
    const candidate = { ...device, id: device._id, facets: new Set(device.facets) };
    const parsed = await parseTargets(targets);
    const matched = await firstMatch(parsed, candidate);
    const twice = matched && (await reachedTwice(deps.audience, { projectId, targets: parsed }, [device]));
    const reachedThrough = twice?.get(deviceId);
    return {
      device: deviceView(device),
      ...(matched && { matched: matched.source }),
      ...(reachedThrough && { reachedThrough }),
    };
  }),
];
