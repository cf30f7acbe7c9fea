import type { ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";
import type { Logger } from "pino";
import { HeraldError, toProblem } from "../herald-error.ts";

const codes = new WeakMap<ServerResponse, ErrorCode>();

/** The code of the error that a response was given, for the log line of its request. */
export const answeredWith = (response: ServerResponse): ErrorCode | undefined => codes.get(response);

/** Express's own errors in Herald's words: a path that is not valid percent-encoding is all that is left of them. */
const translate = (error: unknown): unknown =>
  error instanceof URIError ? new HeraldError("malformed-request", "path: is not valid percent-encoding") : error;

/**
 * Every error becomes problem details. What nobody foresaw is logged in full and answered as 500. Half an answer cannot be turned into
 * a problem; cutting it off is the one way left to say so.
 */
export const createAnswerError =
  (log: Logger) =>
  (thrown: unknown, response: ServerResponse): void => {
    const error = translate(thrown);
    const { status, headers, body } = toProblem(error, String(response.getHeader("x-request-id")));
    codes.set(response, error instanceof HeraldError ? error.code : "internal");
    if (!(error instanceof HeraldError) || error.code === "internal") log.error({ err: error }, "request failed");
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.statusCode = status;
    for (const name in headers) response.setHeader(name, headers[name] ?? "");
    response.end(JSON.stringify(body));
  };
