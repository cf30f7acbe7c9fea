import { handleRequest, type RequestListener } from "@herald/bus";
import { audienceRequests, type Platform, type Target } from "@herald/contracts";
import { createYieldIfDue, existing } from "@herald/kit";
import { maxSmallAudience, noZone } from "@herald/rules";
import type { z } from "zod";
import type { Deps } from "../deps.ts";
import { assign, indexedTargets, wantedKeys } from "../domain/audience.ts";
import { type Candidate, matches } from "../domain/matches.ts";
import { type BucketRange, nextPage, partitionBatches } from "../domain/partition-batches.ts";
import { createRuleCounts } from "../domain/rule-counts.ts";
import { type AudienceRow, mayBeReachedTwice, partitionableOf } from "../stores/audience-row.ts";
import { deviceNotFound, deviceView } from "./change-device.ts";
import {
  audienceQuery,
  candidateOf,
  firstRange,
  isOfApp,
  parseTargets,
  reachedTwice,
  readPage,
  sizeOf,
  withPushTokens,
} from "./read-audience.ts";

/** Reads page after page, as an expansion does: only one page is in memory, and each device is in one page. */
const count = async (
  { audience }: Pick<Deps, "audience">,
  { projectId, byZone, countedRules, ...wanted }: z.infer<typeof audienceRequests.count.request>,
  signal: AbortSignal,
) => {
  const query = await audienceQuery(projectId, {
    ...wanted,
    rules: byZone ? { ...wanted.rules, hours: true } : wanted.rules,
  });
  const { targets: sources } = wanted;
  const devices: Record<Platform, number> = { ios: 0, android: 0, web: 0 };
  const zones: Record<string, number> = {};
  const ruleCounts = countedRules && createRuleCounts(countedRules);
  const matched = new Set<number>();
  let range: BucketRange | undefined = await firstRange(audience, query);
  while (range) {
    signal.throwIfAborted();
    const page = await readPage(audience, query, range);
    for (const { platform, recipient } of page.devices) {
      devices[platform]++;
      ruleCounts?.add(recipient);
      if (byZone) zones[recipient.zone ?? noZone] = (zones[recipient.zone ?? noZone] ?? 0) + 1;
    }
    for (const at of page.matched) matched.add(at);
    range = nextPage(range);
  }
  const unmatched = sources.filter((_, at) => !matched.has(at));
  return { devices, unmatched, ...(byZone && { zones }), ...ruleCounts?.sums() };
};

const firstMatch = async (targets: readonly Target[], device: Candidate): Promise<Target | undefined> => {
  const yieldIfDue = createYieldIfDue();
  for (const target of targets) {
    await yieldIfDue();
    if (matches(target, device)) return target;
  }
  return undefined;
};

const onlyOfApp = (app: string, rows: ReadonlyMap<string, readonly AudienceRow[]>) =>
  new Map([...rows].map(([key, some]) => [key, some.filter((row) => isOfApp(app, row))]));

/** Finds the devices of small sends: one query for all, and one per send if they have too many devices. */
const resolve = async (
  { audience }: Pick<Deps, "audience">,
  { projectId, sends, limit }: z.infer<typeof audienceRequests.resolve.request>,
  signal: AbortSignal,
) => {
  const indexed = sends.map(({ targets }) => indexedTargets(targets));
  const anyRules = sends.some(({ rules }) => rules !== undefined);
  const wanted = wantedKeys(indexed.flatMap((one) => one?.keys ?? []));
  const found = await audience.named(projectId, wanted, (limit + 1) * sends.length, anyRules);
  const namedAlone = (keys: Parameters<typeof wantedKeys>[0]) => {
    signal.throwIfAborted();
    return audience.named(projectId, wantedKeys(keys), limit, anyRules);
  };
  const resolveOne = async (
    { targets: sources, app, push, without, rules }: (typeof sends)[number],
    one: (typeof indexed)[number],
  ) => {
    if (!one) return null;
    const { targets, keys } = one;
    const rows = found ?? (await namedAlone(keys));
    if (!rows) return null;
    const { devices, matched } = assign(keys, app === undefined ? rows : onlyOfApp(app, rows));
    if (devices.length > limit) return null;
    const unmatched = sources.filter((_, at) => !matched.has(at));
    if (push !== undefined) {
      signal.throwIfAborted();
      const chosen = await withPushTokens(
        audience,
        { projectId, push, without },
        devices.map((row) => partitionableOf(row, { rules })),
      );
      return { batches: partitionBatches(chosen), unmatched };
    }
    let reached = devices;
    if (devices.some(mayBeReachedTwice)) {
      signal.throwIfAborted();
      const twice = await reachedTwice(audience, { projectId, targets, app }, devices);
      reached = devices.filter(({ _id }) => !twice.has(_id));
    }
    return {
      batches: partitionBatches(reached.map((row) => partitionableOf(row, { rules }))),
      unmatched,
    };
  };
  return { sends: await Promise.all(sends.map((send, at) => resolveOne(send, indexed[at]))) };
};

/** The zones of few devices are read; a large audience may have any of its project's. */
const listZones = async (
  deps: Pick<Deps, "audience" | "projects">,
  { projectId, ...wanted }: z.infer<typeof audienceRequests.zones.request>,
  signal: AbortSignal,
): Promise<{ zones: string[] }> => {
  const request = { projectId, sends: [{ ...wanted, rules: { hours: true as const } }], limit: maxSmallAudience };
  const { sends } = await resolve(deps, request, signal);
  const zones = sends[0]
    ? sends[0].batches.flatMap(({ devices }) => devices.map(({ zone = noZone }) => zone))
    : ((await deps.projects.find(projectId))?.zones ?? []);
  return { zones: zones.length === 0 ? [noZone] : [...new Set(zones)].sort() };
};

export const handleAudienceRequests = (
  deps: Pick<Deps, "audience" | "bus" | "devices" | "projects">,
): RequestListener[] => [
  handleRequest(deps.bus, audienceRequests.count, (request, { signal }) => count(deps, request, signal)),

  handleRequest(deps.bus, audienceRequests.resolve, (request, { signal }) => resolve(deps, request, signal)),

  handleRequest(deps.bus, audienceRequests.size, async ({ projectId, ...wanted }) => ({
    devices: await sizeOf(deps.audience, await audienceQuery(projectId, wanted)),
  })),

  handleRequest(deps.bus, audienceRequests.zones, (request, { signal }) => listZones(deps, request, signal)),

  handleRequest(deps.bus, audienceRequests.countVapidKeys, async ({ projectId }) => {
    const counts = await deps.devices.countByVapidKey(projectId);
    return { subscriptions: [...counts].map(([keyId, devices]) => ({ ...(keyId && { keyId }), devices })) };
  }),

  handleRequest(deps.bus, audienceRequests.explain, async ({ projectId, deviceId, targets, app, push }) => {
    const device = existing(await deps.devices.find(projectId, deviceId), deviceNotFound);
    const parsed = await parseTargets(targets);
    const matched = await firstMatch(parsed, candidateOf(device));
    const otherApp = matched && !isOfApp(app, device);
    const noToken = matched && push !== undefined && !device.tokens?.some(({ key }) => key === push);
    const twice =
      matched && !otherApp && push === undefined
        ? await reachedTwice(deps.audience, { projectId, targets: parsed, app }, [device])
        : undefined;
    const reachedThrough = twice?.get(deviceId);
    return {
      device: deviceView(device),
      ...(matched && { matched: matched.source }),
      ...(otherApp && { otherApp }),
      ...(noToken && { noToken }),
      ...(reachedThrough && { reachedThrough }),
    };
  }),
];
