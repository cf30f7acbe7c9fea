import { randomUUID } from "node:crypto";
import { IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { context, type Histogram, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import helmet from "helmet";
import type { Logger } from "pino";
import type { Health } from "../health.ts";
import { HeraldError, toProblem } from "../herald-error.ts";
import { acceptRequestId, withRequestId } from "../request-context.ts";
import { secondsHistogram, tracer } from "../telemetry/spans.ts";
import { outcomeOf, type ServeRoutes, serveRoutes } from "./serve-routes.ts";
import { type HttpServer, startHttp } from "./start-http.ts";

/**
 * Serves the requests of a JSON API: request ids, one log line, span and measurement per request, security headers, and problem details for
 * every error.
 */
export const createListener = (log: Logger, serve: ServeRoutes): RequestListener => {
  const observe = observeRequests(log);
  const handleError = createErrorHandler(log);
  const headers = securityHeaders();
  /** An error that cannot be answered ends its request alone. */
  const answer = (error: unknown, response: ServerResponse): void => {
    try {
      handleError(error, response);
    } catch (err) {
      log.error({ err }, "could not answer an error");
      response.destroy();
    }
  };
  return (request, response) =>
    observe(request, response, async () => {
      try {
        for (const [name, value] of headers) response.setHeader(name, value);
        requireHost(request);
        await serve(request, response);
      } catch (error) {
        answer(error, response);
      }
    });
};

/** Serves the probes of a service without other HTTP routes. Does not use express, which would need 15 MB for two paths. */
export const startHealthServer = (
  { routes }: Health,
  log: Logger,
  at: { readonly host: string; readonly port: number },
): Promise<HttpServer> =>
  startHttp(createListener(log, serveRoutes(routes, { notFound: "must be /livez or /readyz" })), at);

/**
 * Answers an error with problem details. Logs unexpected errors in full and answers them with 500. A response that has already begun cannot
 * become a problem, so its connection is closed.
 */
const createErrorHandler =
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
    response.end(`${JSON.stringify(body)}\n`);
  };

/** RFC 9112: exactly one Host. With two, a proxy and Herald could see different sites. */
const requireHost = ({ rawHeaders, httpVersionMinor }: IncomingMessage): void => {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === "host") hosts++;
  if (hosts === 1 || (hosts === 0 && httpVersionMinor === 0)) return;
  throw new HeraldError("malformed-request", "host: must be sent exactly once");
};

/** Helmet's headers for an API. They are the same for each response, so helmet runs only once. */
const securityHeaders = (): readonly (readonly [name: string, value: string])[] => {
  const sample = new ServerResponse(new IncomingMessage(new Socket()));
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  })(sample.req, sample, (error) => {
    if (error) throw error;
  });
  return Object.entries(sample.getHeaders()).map(([name, value]) => [name, String(value)] as const);
};

const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * Gives each request one span, one log line and one measurement, named after its route. Takes over or creates a request id,
 * sends it back, and attaches it to everything that the request causes. Records no query, body or token.
 */
const observeRequests = (log: Logger) => {
  let durations: Histogram | undefined;
  return (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const begin = performance.now();
    const sent = request.headers["x-request-id"];
    const requestId = acceptRequestId(sent);
    const ownId = requestId === sent ? randomUUID() : requestId;
    response.setHeader("x-request-id", requestId);
    const method = request.method && knownMethods.has(request.method) ? request.method : "_OTHER";
    const parent = propagation.extract(context.active(), request.headers);
    const span = tracer().startSpan(method, { kind: SpanKind.SERVER }, parent);
    const active = trace.setSpan(parent, span);

    response.once("close", () => {
      const ms = performance.now() - begin;
      const { code, route } = outcomeOf(response);
      const aborted = !response.writableFinished;
      const { statusCode: status } = response;
      const attributes = {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "url.scheme": "http",
        ...(status >= 500 ? { "error.type": String(status) } : {}),
      };
      if (span.isRecording()) {
        span.updateName(`${method} ${route}`);
        span.setAttributes({ ...attributes, "herald.request_id": requestId });
        if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
      durations ??= secondsHistogram(
        "http.server.request.duration",
        "From the first header to the end of the response",
      );
      durations.record(ms / 1000, attributes);
      const probe = route === "/livez" || route === "/readyz";
      const level =
        status >= 500 && status !== 503 ? "error" : status === 503 && !probe ? "warn" : probe ? "debug" : "info";
      if (!log.isLevelEnabled(level)) return;
      withRequestId(requestId, () =>
        context.with(active, () =>
          log[level](
            {
              ...{ method, route, status, ms: Math.round(ms * 10) / 10, code, aborted: aborted || undefined },
              // Audit rows contain this id, which no client can choose.
              ownRequestId: ownId === requestId ? undefined : ownId,
            },
            "request",
          ),
        ),
      );
    });

    withRequestId(requestId, () => context.with(active, next), ownId);
  };
};
