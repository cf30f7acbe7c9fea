import {
  bucketCount,
  bucketOf,
  type DeviceFilter,
  DeviceId,
  type deviceRequests,
  idTime,
  type ListRequest,
  type ProjectId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { decodeAfter, encodeAfter } from "@herald/mongo";
import { exportPage } from "@herald/service";
import type { z } from "zod";
import type { Deps } from "../deps.ts";
import { isDirect } from "../domain/audience.ts";
import { type Partitionable, pageDevices } from "../domain/partition-batches.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import { deviceView } from "./change-device.ts";
import { audienceQuery, readPage } from "./read-audience.ts";

/** Where a walk over the devices of a target continues. A walk is sorted by bucket, and by id within a bucket. */
export type WalkPosition = {
  /** The next bucket to read. */
  readonly bucket: number;
  /** The last device of that bucket that was returned; absent: none. */
  readonly after?: DeviceId;
  /** How many buckets to read together. */
  readonly width: number;
};

/** With a million devices, one bucket has 244. */
export const walkStart: WalkPosition = { bucket: 0, width: 1 };

export const formatPosition = ({ bucket, after = "" as DeviceId, width }: WalkPosition): string =>
  `${bucket}/${width}/${after}`;

/** Undefined for a text that is no position. */
export const parsePosition = (text: string): WalkPosition | undefined => {
  const [, bucket, width, after = ""] = /^(\d{1,4})\/(\d{1,4})\/(.*)$/.exec(text) ?? [];
  if (bucket === undefined || Number(bucket) >= bucketCount || Number(width) < 1 || Number(width) > bucketCount)
    return undefined;
  if (after === "") return { bucket: Number(bucket), width: Number(width) };
  const { data: device } = DeviceId.safeParse(after);
  if (!device || bucketOf(device) !== Number(bucket)) return undefined;
  return { bucket: Number(bucket), width: Number(width), after: device };
};

/** Compares ids in the order of the walk. */
const byWalk = (one: DeviceId, other: DeviceId): number =>
  bucketOf(one) - bucketOf(other) || (one < other ? -1 : one > other ? 1 : 0);

/** How much wider the next read may be: a dense range may follow an empty one, and its read must stay small. */
const growth = 4;

/**
 * How many buckets to read next, after `width` buckets had `read` rows and `matched` wanted devices: enough for a page, and no more rows
 * than a page of an expansion.
 */
export const nextWidth = (
  width: number,
  { read, matched, perPage }: { readonly read: number; readonly matched: number; readonly perPage: number },
): number => {
  const enough = matched === 0 ? bucketCount : Math.ceil((width * (perPage + 1) * 1.5) / matched);
  const affordable = read === 0 ? bucketCount : Math.floor((width * pageDevices) / read);
  return Math.max(1, Math.min(width * growth, enough, affordable, bucketCount));
};

/** One request reads about this many rows at most, in a few hundred milliseconds, and returns the devices found so far. */
const maxRows = 10 * pageDevices;

/** Where a list continues. */
export const listPosition = (page: ListRequest): WalkPosition => {
  const key = decodeAfter(page.by === "key" ? page.after : "");
  if (key === undefined) return walkStart;
  const position = parsePosition(key);
  if (position) return position;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `next` of a list with `match`");
};

/** Where an export continues: after the client's last row, or where the previous page ended. */
export const exportPosition = (after: string | undefined): WalkPosition => {
  if (after === undefined) return walkStart;
  const { data: device } = DeviceId.safeParse(after);
  const position = device ? { bucket: bucketOf(device), after: device, width: 1 } : parsePosition(after);
  if (position) return position;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `id` of a row");
};

type Filter = Omit<DeviceFilter, "status"> & Pick<ListRequest, "createdAfter" | "createdBefore">;

const fits = ({ platform, user_id, token, app, createdAfter, createdBefore }: Filter) => {
  const from = createdAfter === undefined ? Number.NEGATIVE_INFINITY : Date.parse(createdAfter);
  const to = createdBefore === undefined ? Number.POSITIVE_INFINITY : Date.parse(createdBefore);
  const timed = createdAfter !== undefined || createdBefore !== undefined;
  return ({ platform: actual, recipient }: Partitionable): boolean => {
    if (platform !== undefined && actual !== platform) return false;
    if (user_id !== undefined && recipient.userId !== user_id) return false;
    if (app !== undefined && recipient.app !== app) return false;
    if (token !== undefined && recipient.token !== token) return false;
    if (!timed) return true;
    const created = idTime(recipient.id).getTime();
    return created >= from && created < to;
  };
};

type MatchRequest = Filter & {
  readonly projectId: ProjectId;
  readonly match: string;
  readonly start: WalkPosition;
  readonly perPage: number;
};

/**
 * The active devices that a send to the target reaches, found by the code that expands a send. Sorted by bucket, because no index
 * sorts the devices of a topic by id. A page before the last one may have fewer devices than requested.
 */
export const matchDevices = async (
  { audience, devices }: Pick<Deps, "audience" | "devices">,
  { projectId, match, start, perPage, ...filter }: MatchRequest,
  signal: AbortSignal,
): Promise<{ data: DeviceDocument[]; next: WalkPosition | null }> => {
  const query = await audienceQuery(projectId, { targets: [match] });
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
      ? { bucket: bucketOf(last), after: last, width }
      : bucket < bucketCount
        ? { bucket, width }
        : null;
  const documents = new Map((await devices.findActive(projectId, shown)).map((device) => [device._id, device]));
  return { data: shown.flatMap((id) => documents.get(id) ?? []), next };
};

/** A page of an export: the same devices as a list with the same filters. With `match`, a page before the last one may be empty. */
export const exportDevices = (
  deps: Pick<Deps, "audience" | "devices">,
  { after: first, limit, keys, match, status, ...wanted }: z.output<typeof deviceRequests.export.request>,
  signal: AbortSignal,
) => {
  const read = async (after: string | undefined, perPage: number) => {
    if (match !== undefined) {
      const walk = { ...wanted, match, start: exportPosition(after), perPage };
      const { data, next } = await matchDevices(deps, walk, signal);
      return { data, next: next && formatPosition(next) };
    }
    const { projectId, createdAfter, createdBefore, ...filter } = wanted;
    const page = { by: "key", after: after === undefined ? "" : encodeAfter(after), perPage } as const;
    const { data, ...found } = await deps.devices.list(
      projectId,
      { ...filter, status },
      { ...page, createdAfter, createdBefore },
    );
    return { data, next: "next" in found && found.next !== null ? (data.at(-1)?._id ?? null) : null };
  };
  return exportPage({ after: first, limit }, signal, async (after, perPage) => {
    const { data, next } = await read(after, perPage);
    const rows = data.map((device) => ({ ...deviceView(device), ...(keys && device.keys && { keys: device.keys }) }));
    return { rows, next };
  });
};
