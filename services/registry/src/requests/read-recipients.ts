import type { AskedRules, ProjectId, RecipientKind, RecipientLine } from "@herald/contracts";
import type { Partitionable } from "../domain/partition-batches.ts";
import type { AudienceRow } from "../stores/audience-row.ts";
import type { AudienceStore } from "../stores/audience-store.ts";
import { isOfApp, mayBeReachedTwice, parseTargets, partitionableOf, reachedTwice } from "./read-audience.ts";

/** What of a device is the key of its recipient. */
const keyOf: Readonly<Record<RecipientKind, (row: AudienceRow) => string | undefined>> = {
  user: ({ userId }) => userId,
  device: ({ _id }) => _id,
  token: ({ token }) => token,
};

type Recipients = {
  readonly projectId: ProjectId;
  readonly kind: RecipientKind;
  readonly lines: readonly RecipientLine[];
  /** Only devices of this app. */
  readonly app?: string | undefined;
  /** Their values at these paths are added. */
  readonly devicePaths?: readonly string[] | undefined;
  /** What these ask is added. */
  readonly rules?: AskedRules | undefined;
};

/** The active devices of recipients, each with its recipient's values, and the positions of recipients without a device. */
export const readRecipients = async (
  audience: Pick<AudienceStore, "ofRecipients" | "ofInstallations">,
  { projectId, kind, lines, app, devicePaths, rules }: Recipients,
): Promise<{ devices: Partitionable[]; unmatched: number[] }> => {
  // A user who was erased has no key.
  const byKey = new Map(lines.map(({ key, values }) => [key, values] as const));
  byKey.delete("");
  // Sorted, and all in one query: FerretDB plans a query for milliseconds, and reads neighbours in an index together.
  const keys = [...byKey.keys()].sort();
  const found = await audience.ofRecipients(projectId, kind, keys, { devicePaths, rules });
  const rows = found.filter((row) => isOfApp(app, row));

  const doubtful = rows.filter(mayBeReachedTwice);
  const targets = doubtful.length === 0 ? [] : await parseTargets(keys.map((key) => `${kind}:${key}`));
  const twice = await reachedTwice(audience, { projectId, targets, app }, doubtful);
  const matched = new Set<string>();
  const devices: Partitionable[] = [];
  for (const row of rows) {
    const key = keyOf[kind](row) ?? "";
    const values = byKey.get(key);
    if (values === undefined) continue;
    matched.add(key);
    if (twice.has(row._id)) continue;
    const device = partitionableOf(row, { devicePaths, rules });
    const { recipient } = device;
    // Not a copy: an upload has as many devices as a broadcast.
    recipient.values = recipient.values === undefined ? values : { ...values, ...recipient.values };
    devices.push(device);
  }
  return { devices, unmatched: [...lines.keys()].filter((at) => !matched.has(lines[at]?.key ?? "")) };
};
