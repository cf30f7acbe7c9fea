import { z } from "zod";
import { deviceFilterQuery } from "./devices.ts";
import { NewTarget } from "./notification-limits.ts";
import { listQuery } from "./pagination.ts";

/** `match` walks by hashes of ids, from one device to the next. */
const notBesideMatch = {
  page: "cannot be combined with match, which has no order to count pages in; walk by `after`",
  sort: "cannot be combined with match, which lists devices in the order of a send's batches",
  status: "cannot be combined with match, which lists active devices alone, as a send does",
} as const;

/** Refuses the parameters that a walk cannot obey. */
export const checkMatch = (
  query: Partial<Record<"match" | keyof typeof notBesideMatch, unknown>>,
  context: Pick<z.RefinementCtx, "addIssue">,
): void => {
  if (query.match === undefined) return;
  for (const [name, message] of Object.entries(notBesideMatch))
    if (query[name as keyof typeof notBesideMatch] !== undefined)
      context.addIssue({ code: "custom", path: [name], message });
};

/** The query of `GET /devices`. */
export const DeviceListQuery = z
  .strictObject({
    ...listQuery,
    ...deviceFilterQuery,
    match: NewTarget.optional().meta({
      description:
        "A target, such as `topic:news`: only the active devices that a send to it reaches. Walk by `after` alone: a page may have fewer devices than `per_page`, even none, before `next` is null. `sort`, `page` and `status` cannot be combined with it",
      examples: ["metadata:plan=pro"],
    }),
  })
  .superRefine(checkMatch);
