import { type Answering, answer, type Bus } from "@herald/bus";
import {
  CountAudience,
  CountVapidKeys,
  ExplainDevice,
  type Platform,
  type ProjectId,
  type Target,
} from "@herald/contracts";
import { createYieldIfDue } from "@herald/kit";
import { audienceOf } from "../domain/audience.ts";
import { type Candidate, matches } from "../domain/matches.ts";
import { type BucketRange, nextPage } from "../domain/plan-pages.ts";
import { firstRange, readPage, understood } from "../handlers/read-audience.ts";
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

/** Who would get a notification, and why a device would. */
export const answerAudience = (bus: Bus, parts: Parts): Answering[] => [
  answer(bus, CountAudience, ({ projectId, targets }, { signal }) => count(parts, projectId, targets, signal)),

  answer(bus, CountVapidKeys, async ({ projectId }) => {
    const counts = await parts.devices.countByVapidKey(projectId);
    return { subscriptions: [...counts].map(([keyId, devices]) => ({ ...(keyId && { keyId }), devices })) };
  }),

  answer(bus, ExplainDevice, async ({ projectId, deviceId, targets }) => {
    const device = await parts.devices.find(projectId, deviceId);
    if (!device) throw noDevice();
    const candidate = { ...device, id: device._id, facets: new Set(device.facets) };
    const matched = await firstMatch(await understood(targets), candidate);
    return { device: deviceView(device), ...(matched && { matched: matched.source }) };
  }),
];
