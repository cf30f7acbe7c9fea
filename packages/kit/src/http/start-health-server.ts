import type { Logger } from "pino";
import type { Health } from "../health.ts";
import { createErrorHandler } from "./handle-error.ts";
import { observeRequests } from "./observe-requests.ts";
import { requireHost } from "./require-host.ts";
import { setSecurityHeaders } from "./security-headers.ts";
import { serveRoutes } from "./serve-routes.ts";
import { type HttpServer, startHttp } from "./start-http.ts";

/** `/livez` and `/readyz` as routes. */
export const probeRoutes = ({ probes }: Health) =>
  [...probes].map(([pattern, probe]) => ({
    method: "GET",
    pattern,
    serve: (_request: unknown, response: Parameters<typeof probe>[0]) => probe(response),
  }));

/** Serves the probes of a service that has no other HTTP. Without express, which would hold 15 MB for two paths. */
export const startHealthServer = ({
  health,
  log,
  host,
  port,
}: {
  health: Health;
  log: Logger;
  host: string;
  port: number;
}): Promise<HttpServer> => {
  const observe = observeRequests(log);
  const setHeaders = setSecurityHeaders();
  const handleError = createErrorHandler(log);
  const serve = serveRoutes(probeRoutes(health), { notFound: "must be /livez or /readyz" });
  return startHttp(
    (request, response) =>
      observe(request, response, () =>
        setHeaders(request, response, () =>
          requireHost(request, response, (error) => {
            const served = error === undefined ? serve(request, response) : Promise.reject(error);
            served.catch((reason) => handleError(reason, response));
          }),
        ),
      ),
    { host, port },
  );
};
