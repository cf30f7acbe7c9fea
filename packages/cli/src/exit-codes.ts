import type { HeraldError } from "@herald/client";

/** Exit codes for scripts. */
export const exitCodes = {
  ok: 0,
  /** Herald failed, a watched notification did not complete, a test push was not accepted, or the doctor found a problem. */
  failed: 1,
  /** The command line or the content is invalid. */
  usage: 2,
  /** The credential is missing, unknown or insufficient. */
  credential: 3,
  notFound: 4,
  conflict: 5,
  /** A limit or a quota. */
  limit: 6,
  /** No answer, or Herald is unavailable: try again later. */
  unavailable: 7,
  interrupted: 130,
} as const;

/** Shown by `herald --help`. */
export const exitCodesHelp = `

Exit codes:
  0 success · 1 failed · 2 invalid · 3 credential · 4 not found · 5 conflict
  6 limit or quota · 7 unavailable · 130 interrupted`;

const byStatus: Readonly<Record<number, number>> = {
  400: exitCodes.usage,
  401: exitCodes.credential,
  403: exitCodes.credential,
  404: exitCodes.notFound,
  409: exitCodes.conflict,
  410: exitCodes.notFound,
  413: exitCodes.usage,
  422: exitCodes.usage,
  429: exitCodes.limit,
  502: exitCodes.unavailable,
  503: exitCodes.unavailable,
  504: exitCodes.unavailable,
};

export const exitCodeOf = ({ status }: Pick<HeraldError, "status">): number =>
  status === undefined ? exitCodes.unavailable : (byStatus[status] ?? exitCodes.failed);
