import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet from "helmet";

/** Middleware that sets what helmet sets for an API. The headers are the same for each response, so helmet runs once. */
export const setSecurityHeaders = () => {
  const sample = new ServerResponse(new IncomingMessage(new Socket()));
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  })(sample.req, sample, (error) => {
    if (error) throw error;
  });
  const headers = Object.entries(sample.getHeaders()).map(([name, value]) => [name, String(value)] as const);
  return (_request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
};
