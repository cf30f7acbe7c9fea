import { IdempotencyRecord, type NotificationId, newNotificationIds } from "@herald/contracts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { packAcceptedIds, unpackIds } from "./accepted-ids.ts";

const now = new Date();

/** Ids of groups of these sizes. Other requests use the first ids of each group. */
const idsOf = (sizes: readonly number[]): NotificationId[] =>
  sizes.flatMap((size) => newNotificationIds(now, Math.min(256, size + 3)).slice(-size));

test("unpacking returns the packed ids, whatever the groups and gaps", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 256 }), { minLength: 1, maxLength: 4 }),
      fc.infiniteStream(fc.boolean()),
      (sizes, refused) => {
        const ids: (NotificationId | undefined)[] = [];
        for (const id of idsOf(sizes)) {
          while (ids.length < 500 && refused.next().value) ids.push(undefined);
          ids.push(id);
        }
        const packed = packAcceptedIds(ids);
        expect(unpackIds(packed, ids.length)).toEqual(ids);
        expect(packed.groups.length).toBeLessThanOrEqual(sizes.length);
        const record = { body: "hash", id: "ntf_1", at: 1, batch: packed };
        expect(IdempotencyRecord.parse(JSON.parse(JSON.stringify(record))).batch).toEqual(packed);
      },
    ),
    { numRuns: 50 },
  );
});

test("a fully accepted request needs no bitmap, and one of 500 stays short", () => {
  const ids = idsOf([256, 244]);
  expect(packAcceptedIds(ids)).toEqual({
    groups: [
      [ids[0], 256],
      [ids[256], 244],
    ],
  });
  const next = idsOf([200, 134]).values();
  const gaps = Array.from({ length: 500 }, (_, at) => (at % 3 === 0 ? next.next().value : undefined));
  gaps.push(...next);
  expect(unpackIds(packAcceptedIds(gaps), gaps.length)).toEqual(gaps);
  expect(JSON.stringify(packAcceptedIds(gaps)).length).toBeLessThan(250);
});
