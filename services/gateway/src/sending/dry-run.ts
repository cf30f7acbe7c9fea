import {
  audienceOfContent,
  audienceRequests,
  type CountedRules,
  type DeliveryReason,
  type DryRun,
  type LocalTime,
  notificationLimits,
  type SendV1,
  targetsOfSend,
} from "@herald/contracts";
import { createRenderPersonal, weighPayloads } from "@herald/payload";
import { askedRulesOf, placeholderValues, planWaves, rulesOfSend, type SendRules } from "@herald/rules";
import type { RequestDeps } from "../deps.ts";
import type { RulesDeps } from "./accept-notification.ts";
import { plannedRollout } from "./check-rollout.ts";
import { renderSamples } from "./render-samples.ts";

/** Longer than for other requests: registry reads every device of the audience. */
const countTimeoutMs = 8_000;

const platforms = ["ios", "android", "web"] as const;

/** The texts of its first recipient, with placeholders for what is not known of the device. */
const personalSample = (command: SendV1): SendV1 => {
  const { content, personal, recipients = [] } = command;
  const first = recipients[0]?.[0];
  if (personal === undefined || (content.recipients && first === undefined)) return command;
  const values = {
    ...placeholderValues(personal.devicePaths ?? []),
    ...first?.values,
    ...(first && content.recipients?.kind === "user" && { user: { id: first.key } }),
  };
  const rendered = createRenderPersonal(content, personal)(values, undefined);
  return "content" in rendered ? { ...command, content: rendered.content } : command;
};

/** The waves in which devices of these zones would be sent to. */
const scheduleOfZones = (local: LocalTime, zones: Readonly<Record<string, number>>): DryRun["schedule"] =>
  planWaves(local, Object.keys(zones))
    .filter(({ skip }) => skip === undefined)
    .map((wave) => ({
      at: wave.at.toISOString(),
      devices: wave.zones.reduce((sum, zone) => sum + (zones[zone] ?? 0), 0),
    }));

/** The rules that registry applies to the devices that it counts; undefined: none apply. */
const countedOf = ({ expiresAt, sendAt, local }: SendV1, rules: SendRules | undefined): CountedRules | undefined => {
  if (!rules && !local) return undefined;
  return {
    ...(rules?.hours && { hours: rules.hours }),
    ownHours: rules?.ownHours === true,
    zone: rules?.zone ?? local?.zone ?? "UTC",
    at: sendAt ?? new Date().toISOString(),
    expiresAt,
    ...(local && { local }),
  };
};

const addAll = (sums: Record<string, number>, counts: Readonly<Record<string, number>> = {}): void => {
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
};

const delaysOf = (delayed: Readonly<Record<string, number>>): DryRun["delayed"] =>
  Object.entries(delayed)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([until, devices]) => ({ until, reason: "quiet-hours" satisfies DeliveryReason, devices }));

type DryRunDeps = RequestDeps & RulesDeps;

/** Counts the audience and renders samples; changes nothing. */
export const dryRun = async ({ sendRequest, openTokens, projects }: DryRunDeps, command: SendV1): Promise<DryRun> => {
  const { projectId, content, local } = command;
  const targets = targetsOfSend(command);
  const devices = { ios: 0, android: 0, web: 0 };
  const unmatched: string[] = [];
  const zones: Record<string, number> = {};
  const rules = rulesOfSend(projects.rules(projectId), content);
  const countedRules = countedOf(command, rules);
  const skips: Record<string, number> = {};
  const delayed: Record<string, number> = {};
  for (let from = 0; from < targets.length; from += notificationLimits.targets) {
    const some = targets.slice(from, from + notificationLimits.targets);
    const request = {
      projectId,
      ...audienceOfContent({ ...content, targets: some }),
      ...(local && { byZone: true }),
      ...(rules && { rules: askedRulesOf(rules) }),
      ...(countedRules && { countedRules }),
    };
    const counted = await sendRequest(audienceRequests.count, request, { timeoutMs: countTimeoutMs });
    for (const platform of platforms) devices[platform] += counted.devices[platform];
    unmatched.push(...counted.unmatched);
    addAll(zones, counted.zones);
    addAll(skips, counted.skips);
    addAll(delayed, counted.delayed);
  }
  const shown = platforms.filter((platform) => devices[platform] > 0);
  const sample = personalSample(command);
  const rendered = renderSamples(sample, shown);
  const weights = weighPayloads(sample.content, sample, openTokens.length, undefined);
  const total = devices.ios + devices.android + devices.web;
  return {
    dry_run: true,
    devices: { total, ...devices },
    unmatched,
    ...(local && { schedule: scheduleOfZones(local, zones) }),
    ...(content.rollout && { rollout: plannedRollout(content.rollout, total) }),
    ...(countedRules && { skips, delayed: delaysOf(delayed), evaluated_later: rules?.cap ? ["frequency-cap"] : [] }),
    rendered,
    sizes: Object.fromEntries(Object.entries(weights).filter(([name]) => name in rendered)),
  };
};
