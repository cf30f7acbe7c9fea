import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";
import { context, type Histogram, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Logger } from "pino";
import { acceptRequestId, withRequestId } from "../request-context.ts";
import { secondsHistogram, tracer } from "../telemetry/spans.ts";

const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * Middleware that gives each request one span, one log line and one measurement, named after its route. Takes over or creates a request id,
 * sends it back, and attaches it to everything that the request causes. Records no query, body or token.
 */
export const observeRequests = (log: Logger) => {
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

/** Data of a request for logs, spans and metrics, beside its status. `route` is a pattern, so its cardinality is low. */
type RequestOutcome = { route: string; code?: ErrorCode };

const outcomes = new WeakMap<ServerResponse, RequestOutcome>();

export const outcomeOf = (response: ServerResponse): RequestOutcome => {
  const outcome = outcomes.get(response) ?? { route: "unmatched" };
  outcomes.set(response, outcome);
  return outcome;
};
