import {
  type AppId,
  type AskedRules,
  type DeviceId,
  isActivityPushKey,
  type ProjectId,
  type PushKey,
  parseTarget,
  type Target,
} from "@herald/contracts";
import { createYieldIfDue, HeraldError } from "@herald/kit";
import { audienceOf, type DeviceLookup, isDirect, neededBy } from "../domain/audience.ts";
import { tokenFacet } from "../domain/facets.ts";
import type { StoredToken } from "../domain/further-tokens.ts";
import { maxPerInstallation } from "../domain/installations.ts";
import { checkMatches, matches } from "../domain/matches.ts";
import {
  allBuckets,
  type BucketRange,
  firstPage,
  type Partitionable,
  smallAudience,
} from "../domain/partition-batches.ts";
import { type AudienceRow, type Installed, mayBeReachedTwice, partitionableOf } from "../stores/audience-row.ts";
import type { AudienceStore, InstalledRow } from "../stores/audience-store.ts";

/** Whether a send to devices of `app` is for a device. */
export const isOfApp = (app: string | undefined, device: { readonly app?: string | undefined }): boolean =>
  app === undefined || device.app === app;

/**
 * Maps each device that would get the push twice to the device of the same app installation that gets it through the platform's own
 * provider. That device must be active and match one of the targets. An installation with more devices than one may have is ignored.
 * Costs one query, or none if no device has both another provider and an installation.
 */
export const reachedTwice = async (
  audience: Pick<AudienceStore, "ofInstallations">,
  { projectId, targets, app }: Pick<AudienceQuery, "projectId" | "targets" | "app">,
  devices: readonly Installed[],
): Promise<ReadonlyMap<DeviceId, DeviceId>> => {
  const asked = devices.filter(mayBeReachedTwice);
  if (asked.length === 0) return new Map();
  const yieldIfDue = createYieldIfDue();
  const installations = new Map(
    asked.map(({ installationKey = "" }) => [
      installationKey,
      { devices: 0, reached: undefined as DeviceId | undefined },
    ]),
  );
  const take = async (rows: readonly InstalledRow[]): Promise<void> => {
    for (const row of rows) {
      const installation = installations.get(row.installationKey ?? "");
      if (!installation || ++installation.devices > maxPerInstallation || installation.reached) continue;
      if (!isOfApp(app, row)) continue;
      const candidate = candidateOf(row);
      for (const target of targets) {
        const due = yieldIfDue();
        if (due) await due;
        if (!matches(target, candidate)) continue;
        installation.reached = row._id;
        break;
      }
    }
  };
  await audience.ofInstallations(projectId, [...installations.keys()], neededBy(targets), take);
  return new Map(
    asked.flatMap(({ _id, installationKey = "" }) => {
      const { devices = 0, reached } = installations.get(installationKey) ?? {};
      return reached === undefined || devices > maxPerInstallation ? [] : [[_id, reached] as const];
    }),
  );
};

/** Concurrent lookups of one page; most pages have one. */
const lookupsAtATime = 4;

/** Does not check the number of clauses again: the gateway has. @throws HeraldError `schema` for a target that does not parse. */
export const parseTargets = async (sources: readonly string[]): Promise<Target[]> => {
  const targets: Target[] = [];
  const yieldIfDue = createYieldIfDue();
  for (const [at, source] of sources.entries()) {
    await yieldIfDue();
    const parsed = parseTarget(source);
    if ("problem" in parsed) throw new HeraldError("schema", `targets.${at}: ${parsed.problem}`);
    targets.push(parsed.target);
  }
  return targets;
};

const each = async <Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> => {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(lookupsAtATime, items.length) }, worker));
};

/** The targets of a send, and the lookups that find their devices. */
export type AudienceQuery = Awaited<ReturnType<typeof audienceQuery>>;

/** @throws HeraldError `schema` for a target that does not parse. */
export const audienceQuery = async (
  projectId: ProjectId,
  { targets: sources, app, push, without, devicePaths, rules }: AskedAudience,
) => {
  const targets: readonly Target[] = await parseTargets(sources);
  return {
    projectId,
    targets,
    lookups: lookupsOf(targets, push),
    ...(app !== undefined && { app }),
    ...(push !== undefined && { push }),
    ...(without !== undefined && { without }),
    ...(devicePaths && { devicePaths }),
    ...(rules !== undefined && { rules }),
  };
};

/** An audience as a send or a count asks for it. `devicePaths`: the recipients get the values of their devices there. */
type AskedAudience = {
  readonly targets: readonly string[];
  readonly app?: AppId | undefined;
  readonly push?: PushKey | undefined;
  readonly without?: PushKey | undefined;
  readonly devicePaths?: readonly string[] | undefined;
  readonly rules?: AskedRules | undefined;
};

/** Few devices have a token of a push type, and fewer one of an activity: an index finds them. */
const lookupsOf = (targets: readonly Target[], push: PushKey | undefined): DeviceLookup[] => {
  const lookups = audienceOf(targets);
  if (push === undefined || isDirect(lookups)) return lookups;
  if (!isActivityPushKey(push)) return lookups.map((lookup) => onlyWithToken(lookup, push));
  const [only] = lookups;
  if (lookups.length === 1 && only?.by === "facets" && only.facets.length === 1)
    return [{ ...only, also: tokenFacet(push) }];
  return [{ by: "conditions", facets: [tokenFacet(push)], targets: targets.map((_, at) => at) }];
};

/** With `zones`, only devices of these time zones. */
export type ZonedQuery = AudienceQuery & { readonly zones?: readonly string[] };

const onlyWithToken = (lookup: DeviceLookup, push: PushKey): DeviceLookup =>
  lookup.by === "all" ? { by: "facets", facets: [tokenFacet(push)], targets: lookup.targets } : lookup;

/** FCM passes pushes of activities to APNs, beside its own token of the device. */
const passesByFcm = (push: PushKey, provider: string | undefined): boolean =>
  provider === "fcm" && (push.startsWith("liveactivity/") || isActivityPushKey(push));

type ByToken = Required<Pick<AudienceQuery, "projectId" | "push">> & Pick<AudienceQuery, "without">;

/** {@link choosePushTokens} for devices whose tokens are not read yet. */
export const withPushTokens = async (
  audience: Pick<AudienceStore, "tokensOf">,
  { projectId, push, without }: ByToken,
  devices: readonly Partitionable[],
): Promise<Partitionable[]> => {
  const ids = devices.map(({ recipient }) => recipient.id);
  if (ids.length === 0) return [];
  return choosePushTokens(push, devices, await audience.tokensOf(projectId, ids, push, without));
};

/**
 * Those of the devices that have a token of the push type, with this token as their own. APNs gave it, whichever provider serves the device
 * otherwise.
 */
const choosePushTokens = (
  push: PushKey,
  devices: readonly Partitionable[],
  tokens: ReadonlyMap<DeviceId, StoredToken>,
): Partitionable[] =>
  devices.flatMap(({ platform, provider, recipient, changedAt }) => {
    const found = tokens.get(recipient.id);
    if (!found) return [];
    if (passesByFcm(push, provider))
      return [{ platform, provider, recipient: { ...recipient, liveToken: found.token }, changedAt }];
    // No kit of the app sees these pushes.
    const { tokenKind: _, keys: __, vapidKeyId: ___, capabilities: ____, ...rest } = recipient;
    const { token, environment = recipient.environment, channels } = found;
    const chosen = { ...rest, token, tokenAt: found.at.getTime(), ...(environment && { environment }) };
    return [{ platform, recipient: { ...chosen, ...(channels && { channels }) }, changedAt }];
  });

/** How many devices lookups find. A small audience is counted, a large one estimated; a device that two lookups find counts twice. */
export const sizeOf = async (audience: AudienceStore, query: ZonedQuery): Promise<number> => {
  const { lookups } = query;
  let size = 0;
  await each(lookups, async (lookup) => {
    if (size > smallAudience) return;
    const count = await audience.countUpTo(query, lookup, smallAudience + 1);
    size += count; // read after the wait: another lookup may have added to it
  });
  if (size <= smallAudience) return size;
  size = 0;
  await each(lookups, async (lookup) => {
    const estimate = await audience.estimate(query, lookup);
    size += estimate;
  });
  return size;
};

/** The buckets of the first page. */
export const firstRange = async (audience: AudienceStore, query: ZonedQuery, within = allBuckets) =>
  isDirect(query.lookups) ? within : firstPage(await sizeOf(audience, query), within);

export const candidateOf = <Row extends Pick<AudienceRow, "_id"> & Partial<Pick<AudienceRow, "facets">>>(row: Row) => ({
  ...row,
  id: row._id,
  facets: new Set(row.facets),
});

/**
 * The active devices of a page, each once, and the sorted positions of the targets that matched one of them. `read`: how many rows the
 * lookups read.
 */
export const readPage = async (
  audience: AudienceStore,
  { projectId, targets, lookups, app, push, without, devicePaths, rules, zones }: ZonedQuery,
  range: BucketRange,
): Promise<{ devices: Partitionable[]; matched: number[]; read: number }> => {
  const devices = new Map<string, Partitionable>();
  const matched = new Set<number>();
  const doubtful: Installed[] = [];
  let read = 0;
  const tokens = new Map<DeviceId, StoredToken>();
  // Whether a device has none of the other key, the page does not say.
  const ofPage = without === undefined ? push : undefined;
  const confirming = { targets, candidateOf, yieldIfDue: createYieldIfDue() };
  await each(lookups, (lookup) =>
    audience.page({ projectId, targets, devicePaths, rules, zones, push: ofPage }, lookup, range, async (all) => {
      read += all.length;
      const rows = app === undefined ? all : all.filter((row) => isOfApp(app, row));
      const { found, matched: positions } = await checkMatches(lookup, rows, confirming);
      for (const row of found) {
        devices.set(row._id, partitionableOf(row, { devicePaths, rules }));
        if (row.tokens?.[0]) tokens.set(row._id, row.tokens[0]);
        const { _id, provider, installationKey } = row;
        if (mayBeReachedTwice(row)) doubtful.push({ _id, provider, installationKey });
      }
      for (const position of positions) matched.add(position);
    }),
  );
  const sorted = [...matched].sort((one, other) => one - other);
  // Each of these tokens belongs to one device, so no device is reached twice.
  if (push !== undefined) {
    const all = [...devices.values()];
    const chosen = ofPage
      ? choosePushTokens(push, all, tokens)
      : await withPushTokens(audience, { projectId, push, without }, all);
    return { devices: chosen, matched: sorted, read };
  }
  for (const id of (await reachedTwice(audience, { projectId, targets, app }, doubtful)).keys()) devices.delete(id);
  return { devices: [...devices.values()], matched: sorted, read };
};
