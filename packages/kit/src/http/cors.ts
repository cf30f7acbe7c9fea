import type { IncomingMessage, ServerResponse } from "node:http";

/** How long a browser may cache a preflight: two hours is Chromium's maximum. */
const preflightSeconds = 7_200;

/** Lets pages of any origin read a response. `*` is safe because routes for browsers use no cookies. */
export const allowOrigins = (response: ServerResponse): void => {
  response.setHeader("access-control-allow-origin", "*");
  response.setHeader("access-control-expose-headers", "X-Request-Id, Retry-After, RateLimit, RateLimit-Policy");
};

/** Answers preflights. They are not rate limited: a refusal would cost as much, and reporting an open waits for them. */
export const preflightServer = (methods: readonly string[]) => {
  const headers = {
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": "Authorization, Content-Type, X-Request-Id, traceparent, tracestate",
    "access-control-max-age": String(preflightSeconds),
  };
  return async (_request: IncomingMessage, response: ServerResponse, { allow }: { readonly allow: string }) =>
    void response.writeHead(204, { allow, ...headers }).end();
};
