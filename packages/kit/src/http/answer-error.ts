import type { ErrorCode } from "@herald/contracts";
import type { ErrorRequestHandler, Response } from "express";
import type { Logger } from "pino";
import { HeraldError, toProblem } from "../herald-error.ts";
import { currentRequestId } from "../request-context.ts";

const codes = new WeakMap<Response, ErrorCode>();

/** The code of the error that a response was given, for the log line of its request. */
export const answeredWith = (response: Response): ErrorCode | undefined => codes.get(response);

/** Express's own errors in Herald's words: a path that is not valid percent-encoding is all that is left of them. */
const translate = (error: unknown): unknown =>
  error instanceof URIError ? new HeraldError("malformed-request", "path: is not valid percent-encoding") : error;

/** The last middleware: every error becomes problem details. What nobody foresaw is logged in full and answered as 500. */
export const answerError =
  (log: Logger): ErrorRequestHandler =>
  (thrown: unknown, _request, response, next) => {
    const error = translate(thrown);
    const { status, headers, body } = toProblem(
      error,
      currentRequestId() ?? String(response.getHeader("x-request-id")),
    );
    codes.set(response, error instanceof HeraldError ? error.code : "internal");
    if (!(error instanceof HeraldError) || error.code === "internal") log.error({ err: error }, "request failed");
    if (response.headersSent) {
      // Half an answer cannot be turned into a problem; cutting it off is the one way left to say so.
      next(error);
      return;
    }
    response.status(status).set(headers).send(JSON.stringify(body));
  };
