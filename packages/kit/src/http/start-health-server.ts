import type { Logger } from "pino";
import type { Health } from "../health.ts";
import { createHttpApp } from "./create-http-app.ts";
import { type HttpServer, startHttp } from "./start-http.ts";

/** `/livez` and `/readyz` for services that have no other HTTP. */
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
}): Promise<HttpServer> => startHttp(createHttpApp({ log, bodyLimitBytes: 1024 }, health.routes), { host, port });
