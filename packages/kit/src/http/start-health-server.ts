import type { Logger } from "pino";
import type { Health } from "../health.ts";
import { HeraldError } from "../herald-error.ts";
import { createListener, type FoundRoute } from "./create-listener.ts";
import { type HttpServer, startHttp } from "./start-http.ts";

const allowed = "GET, HEAD, OPTIONS";

const refuse = (pattern: string, error: HeraldError): FoundRoute => ({
  pattern: () => pattern,
  serve: async () => {
    throw error;
  },
});

/** `/livez` and `/readyz` for services that have no other HTTP, and so without express: it is 15 MB, which they would hold for two paths. */
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
  const find = ({ method = "", url = "" }: { method?: string | undefined; url?: string | undefined }): FoundRoute => {
    const [path = ""] = url.split("?", 1);
    const probe = health.probes.get(path);
    if (probe === undefined)
      return refuse("unmatched", new HeraldError("route-not-found", "path: must be /livez or /readyz"));
    if (method === "GET" || method === "HEAD")
      return { pattern: () => path, serve: (_request, response) => probe(response) };
    if (method === "OPTIONS")
      return {
        pattern: () => path,
        serve: async (_request, response) => {
          response.writeHead(204, { allow: allowed }).end();
        },
      };
    return refuse(
      path,
      new HeraldError("method-not-allowed", `method: must be ${allowed}`, { headers: { allow: allowed } }),
    );
  };
  return startHttp(createListener(log, find), { host, port });
};
