import {
  bucketCount,
  type DeviceFilter,
  DeviceId,
  deviceBucket,
  idTime,
  type ListRequest,
  type ProjectId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { decodeAfter } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { audienceOf, isDirect } from "../domain/audience.ts";
import { byWalk, nextWidth, parsePosition, type WalkPosition, walkAfter, walkStart } from "../domain/match-walk.ts";
import type { Partitionable } from "../domain/partition-batches.ts";
import { pageDevices } from "../domain/plan-pages.ts";
import { parseTargets, readPage } from "../handlers/read-audience.ts";
import type { DeviceDocument } from "../stores/device-document.ts";

/** One request reads at most about so many rows, in a few hundred milliseconds, and answers with what it has found. */
const maxRows = 10 * pageDevices;

/** Where a list continues. */
export const listPosition = (page: ListRequest): WalkPosition => {
  const key = decodeAfter(page.by === "key" ? page.after : "");
  if (key === undefined) return walkStart;
  const position = parsePosition(key);
  if (position) return position;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `next` of a list with `match`");
};

/** Where an export continues: after a row that its client has, or where the page before it ended. */
export const exportPosition = (after: string | undefined): WalkPosition => {
  if (after === undefined) return walkStart;
  const device = DeviceId.safeParse(after);
  const position = device.success ? walkAfter(device.data) : parsePosition(after);
  if (position) return position;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `id` of a row");
};

type Filter = Omit<DeviceFilter, "status"> & Pick<ListRequest, "createdAfter" | "createdBefore">;

const fits = ({ platform, user_id, token, createdAfter, createdBefore }: Filter) => {
  const from = createdAfter === undefined ? Number.NEGATIVE_INFINITY : Date.parse(createdAfter);
  const to = createdBefore === undefined ? Number.POSITIVE_INFINITY : Date.parse(createdBefore);
  const timed = createdAfter !== undefined || createdBefore !== undefined;
  return ({ platform: actual, recipient }: Partitionable): boolean => {
    if (platform !== undefined && actual !== platform) return false;
    if (user_id !== undefined && recipient.userId !== user_id) return false;
    if (token !== undefined && recipient.token !== token) return false;
    const created = timed ? idTime(recipient.id).getTime() : 0;
    return !timed || (created >= from && created < to);
  };
};

type MatchRequest = Filter & {
  readonly projectId: ProjectId;
  readonly match: string;
  readonly start: WalkPosition;
  readonly perPage: number;
};

/**
 * The active devices that a send to the target reaches, found by the code that expands a send. In the order of buckets, because a sort of
 * a topic's devices has no index. A page may have fewer devices than asked for before the walk ends.
 */
export const matchDevices = async (
  { audience, devices }: Pick<Deps, "audience" | "devices">,
  { projectId, match, start, perPage, ...filter }: MatchRequest,
  signal: AbortSignal,
): Promise<{ data: DeviceDocument[]; next: WalkPosition | null }> => {
  const targets = await parseTargets([match]);
  const query = { projectId, targets, lookups: audienceOf(targets) };
  const isWanted = fits(filter);
  const found: DeviceId[] = [];
  let { bucket } = start;
  let width = isDirect(query.lookups) ? bucketCount : start.width;
  let rows = 0;
  while (bucket < bucketCount && found.length <= perPage && rows < maxRows) {
    signal.throwIfAborted();
    const range = { from: bucket, to: Math.min(bucket + width, bucketCount) - 1 };
    const { devices: reached, read } = await readPage(audience, query, range);
    const { after } = start;
    const wanted = reached.filter(isWanted).map(({ recipient }) => recipient.id);
    const unseen = after === undefined ? wanted : wanted.filter((id) => byWalk(id, after) > 0);
    found.push(...unseen.sort(byWalk));
    rows += read;
    bucket = range.to + 1;
    width = nextWidth(range.to - range.from + 1, { read, matched: wanted.length, perPage });
  }
  const shown = found.slice(0, perPage);
  const last = shown.at(-1);
  const next: WalkPosition | null =
    found.length > perPage && last !== undefined
      ? { bucket: deviceBucket(last), after: last, width }
      : bucket < bucketCount
        ? { bucket, width }
        : null;
  const documents = new Map((await devices.findActive(projectId, shown)).map((device) => [device._id, device]));
  return { data: shown.flatMap((id) => documents.get(id) ?? []), next };
};
