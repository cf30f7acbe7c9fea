import type { AskedRules, PlaceInChunk, ProjectId, RecipientKind } from "@herald/contracts";
import { createYieldIfDue } from "@herald/kit";
import type { Partitionable } from "../domain/partition-batches.ts";
import { type AudienceRow, mayBeReachedTwice, partitionableOf } from "../stores/audience-row.ts";
import type { AudienceStore, IdRange } from "../stores/audience-store.ts";
import { parseTargets, reachedTwice } from "./read-audience.ts";

/** What of a device is the key of its recipient. */
const keyOf: Readonly<Record<RecipientKind, (row: AudienceRow) => string | undefined>> = {
  user: ({ userId }) => userId,
  device: ({ _id }) => _id,
  token: ({ token }) => token,
};

/** The devices of a page: more than most chunks have. A user may have any number. */
const maxDevices = 5_000;

type Recipients = {
  readonly projectId: ProjectId;
  readonly kind: RecipientKind;
  /** Of a chunk, by line; empty for a user who was erased. */
  readonly keys: readonly string[];
  /** Where the page begins in the chunk. */
  readonly from: PlaceInChunk;
  /** Where it ended when it was read first; absent: this is the first time. */
  readonly to?: PlaceInChunk | undefined;
  /** Only devices of this app. */
  readonly app?: string | undefined;
  /** Their values at these paths are added. */
  readonly devicePaths?: readonly string[] | undefined;
  /** What these ask is added. */
  readonly rules?: AskedRules | undefined;
};

/**
 * The rows of a page, and where it ends. A page has all devices of several lines, or a part of those of one line with very many. Both ends
 * are the same when it is read again, whatever changed meanwhile.
 */
const readRows = async (
  audience: Pick<AudienceStore, "ofRecipients">,
  { projectId, kind, keys: all, from, to, ...asked }: Recipients,
): Promise<{ rows: AudienceRow[]; to: PlaceInChunk }> => {
  const read = (end: number, range: IdRange, limit?: number) => {
    // Sorted, and all in one query: FerretDB plans a query for milliseconds, and reads neighbours in an index together.
    const keys = [...new Set(all.slice(from.line, end))].filter((key) => key !== "").sort();
    if (keys.length === 0) return [];
    return audience.ofRecipients(projectId, kind, keys, { ...asked, range, ...(limit !== undefined && { limit }) });
  };
  const { after } = from;
  if (to) {
    const end = to.after === undefined ? to.line : to.line + 1;
    return { rows: await read(end, { after, upTo: to.after }), to };
  }
  for (let end = after === undefined ? all.length : from.line + 1; ; ) {
    const rows = await read(end, { after }, maxDevices + 1);
    if (rows.length <= maxDevices) return { rows, to: { line: end } };
    if (end - from.line === 1)
      return { rows: rows.slice(0, maxDevices), to: { line: from.line, after: rows[maxDevices - 1]?._id } };
    end = from.line + Math.ceil((end - from.line) / 2);
  }
};

/** The active devices of a page of a chunk, and the positions of recipients without a device. */
export const readRecipients = async (
  audience: Pick<AudienceStore, "ofRecipients" | "ofInstallations">,
  recipients: Recipients,
): Promise<{ devices: Partitionable[]; unmatched: number[]; to: PlaceInChunk }> => {
  const { projectId, kind, keys, from, app, devicePaths, rules } = recipients;
  const { rows, to } = await readRows(audience, recipients);
  const first = from.after === undefined ? from.line : from.line + 1;
  const own = keys.slice(from.line, to.after === undefined ? to.line : to.line + 1);
  const asked = new Set(own);
  asked.delete("");

  const doubtful = rows.filter(mayBeReachedTwice);
  const targets = doubtful.length === 0 ? [] : await parseTargets([...asked].map((key) => `${kind}:${key}`));
  const twice = await reachedTwice(audience, { projectId, targets, app }, doubtful);
  const matched = new Set<string>();
  const devices: Partitionable[] = [];
  const yieldIfDue = createYieldIfDue();
  for (const row of rows) {
    const due = yieldIfDue();
    if (due) await due;
    const key = keyOf[kind](row) ?? "";
    if (!asked.has(key)) continue;
    matched.add(key);
    if (!twice.has(row._id)) devices.push(partitionableOf(row, { devicePaths, rules }));
  }
  const unmatched = [...keys.keys()].filter(
    (at) => at >= first && at < from.line + own.length && !matched.has(keys[at] ?? ""),
  );
  return { devices, unmatched, to };
};
