import type { ServerResponse } from "node:http";
import type { Logger } from "pino";
import { HeraldError, toProblem } from "../herald-error.ts";
import { outcomeOf } from "./request-outcome.ts";

/**
 * Answers an error as problem details. Logs unexpected errors in full and answers them with 500. A response that has already begun
 * cannot become a problem, so its connection is closed.
 */
export const createErrorHandler =
  (log: Logger) =>
  (error: unknown, response: ServerResponse): void => {
    const { status, headers, body } = toProblem(error, String(response.getHeader("x-request-id")));
    const code = error instanceof HeraldError ? error.code : "internal";
    outcomeOf(response).code = code;
    if (code === "internal") log.error({ err: error }, "request failed");
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.statusCode = status;
    for (const name in headers) response.setHeader(name, headers[name] ?? "");
    response.end(JSON.stringify(body));
  };
