import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { HeraldError } from "../herald-error.ts";
import { createAnswerError } from "./answer-error.ts";
import { createObserver } from "./observe-request.ts";
import { securityHeaders } from "./security-headers.ts";

/** A route that a request leads to. */
export type FoundRoute = {
  /** As express would write it, such as `/api/v1/devices/:id`; asked when all is over. */
  readonly pattern: () => string;
  /** Answers, or throws what is to be answered. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
};

/**
 * What every HTTP server of Herald's has around its routes: request ids, one log line, span and measurement a request, security headers,
 * and problem details for everything that goes wrong.
 */
export const createListener = (
  log: Logger,
  find: (request: IncomingMessage, response: ServerResponse) => FoundRoute,
): RequestListener => {
  const observe = createObserver(log);
  const answerError = createAnswerError(log);
  const headers = securityHeaders();

  const serve = async (request: IncomingMessage, response: ServerResponse, found: FoundRoute): Promise<void> => {
    try {
      const problem = hostProblem(request.rawHeaders, request.httpVersionMinor);
      if (problem) throw problem;
      await found.serve(request, response);
    } catch (error) {
      answerError(error, response);
    }
  };

  return (request, response) => {
    const found = find(request, response);
    observe(request, response, found.pattern, () => {
      for (const [name, value] of headers) response.setHeader(name, value);
      void serve(request, response, found);
    });
  };
};

/** RFC 9112: exactly one Host. Two would let a proxy and Herald see different sites. */
const hostProblem = (rawHeaders: readonly string[], minor: number): HeraldError | undefined => {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === "host") hosts++;
  if (hosts === 1 || (hosts === 0 && minor === 0)) return undefined;
  return new HeraldError("malformed-request", "host: must be sent exactly once");
};
