import { byIndex, findSome, type IndexSpec } from "@herald/mongo";
import type { Collection, Filter, WithId } from "mongodb";

/** A document with `deletedAt` is a tombstone: it stays until its data is removed and its event is published. */
type Deletable = { readonly deletedAt?: Date };

export const notDeleted = { deletedAt: { $exists: false } } as const;

export const deletedIndex = {
  fields: { deletedAt: 1 },
  purpose: "sweep",
  partial: { deletedAt: { $exists: true } },
} as const satisfies IndexSpec;

/** The tombstones of all projects, oldest first. The collection has `deletedIndex`. */
export const findDeleted = <Row extends Deletable>(rows: Collection<Row>, limit: number): Promise<WithId<Row>[]> =>
  findSome(rows, { deletedAt: { $exists: true } } as Filter<Row>, { ...byIndex(deletedIndex), limit });
