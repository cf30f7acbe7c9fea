import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
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
import { audienceOf } from "../domain/audience.ts";
import { type Candidate, matches } from "../domain/matches.ts";
import { partitionBatches } from "../domain/partition-batches.ts";
import { type BucketRange, nextPage } from "../domain/plan-pages.ts";
import { type Asked, assign, planOf, wantedBy } from "../domain/resolve-sends.ts";
import { firstRange, partitionableOf, readPage, understood } from "../handlers/read-audience.ts";
import type { AudienceStore } from "../stores/audience-store.ts";
import type { DeviceStore } from "../stores/device-store.ts";
import { noDevice } from "./change-device.ts";
import { deviceView } from "./views.ts";

type Parts = { readonly audience: AudienceStore; readonly devices: DeviceStore };

/** Page after page, as an expansion reads it: a page is what it holds in memory, and a device is in one page only. */
const count = async ({ audience }: Parts, projectId: ProjectId, sources: readonly string[], signal: AbortSignal) => {
  const targets = await understood(sources);
  const asked = { projectId, targets, lookups: audienceOf(targets) };
  const devices: Record<Platform, number> = { ios: 0, android: 0, web: 0 };
  const matched = new Set<number>();
  let range: BucketRange | undefined = await firstRange(audience, projectId, asked.lookups);
  while (range) {
    signal.throwIfAborted();
    const page = await readPage(audience, asked, range);
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

/** The devices of sends to few each: asked together, and one by one where some of them have so many that others' are cut off. */
const resolve = async ({ audience }: Parts, asked: readonly Asked[], limit: number) => {
  const plans = asked.map(planOf);
  const wanted = wantedBy(plans);
  const found = new Map(
    await Promise.all(
      wanted.map(async (one) => [one.projectId, await audience.named(one, (limit + 1) * asked.length)] as const),
    ),
  );
  const resolveOne = async (at: number) => {
    const plan = plans[at];
    if (!plan) return null;
    const alone = async () => {
      const [own] = wantedBy([plan]);
      return own ? audience.named(own, limit) : new Map<string, never>();
    };
    const rows = found.get(plan.projectId) ?? (await alone());
    if (!rows) return null;
    const { devices, matched } = assign(plan, rows);
    if (devices.length > limit) return null;
    const batches = partitionBatches(devices.map(partitionableOf)).map(({ platform, devices }) => ({
      platform,
      devices: [...devices],
    }));
    return { batches, unmatched: (asked[at]?.targets ?? []).filter((_, position) => !matched.has(position)) };
  };
  return { sends: await Promise.all(asked.map((_, at) => resolveOne(at))) };
};

/** Who would get a notification, and why a device would. */
export const answerAudience = (bus: Bus, parts: Parts): RequestListener[] => [
  handleRequest(bus, CountAudience, ({ projectId, targets }, { signal }) => count(parts, projectId, targets, signal)),

  handleRequest(bus, ResolveSends, ({ sends, limit }) => resolve(parts, sends, limit)),

  handleRequest(bus, CountVapidKeys, async ({ projectId }) => {
    const counts = await parts.devices.countByVapidKey(projectId);
    return { subscriptions: [...counts].map(([keyId, devices]) => ({ ...(keyId && { keyId }), devices })) };
  }),

  handleRequest(bus, ExplainDevice, async ({ projectId, deviceId, targets }) => {
    const device = await parts.devices.find(projectId, deviceId);
    if (!device) throw noDevice();
    const candidate = { ...device, id: device._id, facets: new Set(device.facets) };
    const matched = await firstMatch(await understood(targets), candidate);
    return { device: deviceView(device), ...(matched && { matched: matched.source }) };
  }),
];
