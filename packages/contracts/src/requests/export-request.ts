import { z } from "zod";
import { oneRequest } from "../envelope.ts";
import { ProjectId } from "../ids.ts";

const page = {
  projectId: ProjectId,
  /** The id of the row before the page; absent for the first page. */
  after: z.string().optional(),
  /** At most a thousand. A service sends fewer rows if they are large. */
  limit: z.number().int().min(1).max(1_000),
};

/** Rows as JSON: a service serializes each row once, and the gateway forwards the text. */
const answer = z.object({
  rows: z.array(z.string()),
  /** `after` of the next page: the id of the last row, or the position of a walk; null after the last page. */
  next: z.string().nullable(),
});

/** A request for a page of an export. */
export const exportRequest = <Fields extends z.core.$ZodLooseShape>(
  fields: Fields,
  isHeavy?: Parameters<typeof oneRequest<typeof page & Fields, typeof answer>>[2],
) => oneRequest({ ...page, ...fields }, answer, isHeavy);
