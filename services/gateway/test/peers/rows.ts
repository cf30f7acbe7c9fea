import type { ErrorCode, ListRequest, PageOf, ProjectId, RequestContract } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { z } from "zod";

/** Answers a request of a contract; the test may make it fail instead. */
export type Serve = <Request extends z.ZodType, Answer extends z.ZodType>(
  question: RequestContract<Request, Answer>,
  handle: (data: z.output<Request>) => z.input<Answer> | Promise<z.input<Answer>>,
) => void;

export type Owned<Value> = { readonly projectId: ProjectId; value: Value; readonly credentialHash?: string };

/** A page of rows. */
export const pageOf = <Row extends { id: string }>(oldestFirst: Row[], request: ListRequest): PageOf<Row> => {
  const { perPage } = request;
  const rows = request.newestFirst === true ? oldestFirst.toReversed() : oldestFirst;
  if (request.by === "key") {
    const data = rows.slice(rows.findIndex(({ id }) => id === request.after) + 1).slice(0, perPage);
    const last = data.at(-1);
    return { data, next: data.length === perPage && last !== undefined ? last.id : null };
  }
  const begin = (request.page - 1) * perPage;
  const data = rows.slice(begin, begin + perPage);
  const last = Math.max(1, Math.ceil(rows.length / perPage));
  const shown = data.length > 0 ? { from: begin + 1, to: begin + data.length } : { from: 0, to: 0 };
  return { data, pagination: { count: rows.length, page: request.page, pages: last, last, ...shown } };
};

/** A page of an export. */
export const exportPage = <Row extends { id: string }>(
  rows: readonly Row[],
  { after = "", limit }: { after?: string | undefined; limit: number },
): { rows: string[]; next: string | null } => {
  const left = rows.filter(({ id }) => id > after);
  return {
    rows: left.slice(0, limit).map((row) => JSON.stringify(row)),
    next: left.length > limit ? (left[limit - 1]?.id ?? null) : null,
  };
};

/** The current time, in the format of the API. */
export const at = () => new Date().toISOString();

/** A row of this project, or the error that it does not exist. */
export const owned = <Value>(
  map: Map<string, Owned<Value>>,
  { projectId }: { projectId: ProjectId },
  id: string,
  code: ErrorCode & `${string}-not-found`,
): Owned<Value> => {
  const found = map.get(id);
  if (found?.projectId !== projectId) throw new HeraldError(code, "id: the project has none such");
  return found;
};
/** All rows of a project. */
export const rows = <Value>(map: Map<string, Owned<Value>>, projectId: ProjectId): Value[] =>
  [...map.values()].filter((one) => one.projectId === projectId).map(({ value }) => value);
