import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express, { type NextFunction, type Request, type Response } from "express";
import { z } from "zod";
import type { Push, PushFilter, PushLog } from "../push-log.ts";
import { InvalidScript } from "../script/rule.ts";
import type { Script } from "../script/script.ts";
import { providers } from "../simulator.ts";
import { page } from "./page.ts";
import { streamPushes } from "./stream-pushes.ts";

/** What a client of the simulators must know. */
export interface Addresses {
  readonly apns: string;
  readonly control: string;
  /** The authority to trust for the providers' certificates, PEM. */
  readonly ca: string;
}

interface ControlOptions {
  readonly log: PushLog;
  readonly script: Script;
  readonly host: string;
  readonly publicHost: string;
  readonly port: number;
  /** Asked for when somebody looks, as they are known only once everything listens. */
  readonly addresses: () => Addresses;
  readonly connections: () => Readonly<Record<string, { accepted: number; open: number }>>;
}

/** A page of a script of a thousand rules with bodies. */
const maxBody = "4mb";

/** A cursor as `next` gave it, or an ISO 8601 time with offset. */
const Since = z.union(
  [z.string().regex(/^\d+$/).transform(Number), z.iso.datetime({ offset: true }).transform((text) => new Date(text))],
  "a cursor (a number, as `next` of an earlier answer) or an ISO time such as 2026-01-31T12:00:00Z",
);

const PushQuery = z.strictObject({
  provider: z.enum(providers).optional(),
  token: z.string().optional(),
  status: z.coerce.number().int().optional(),
  since: Since.optional(),
});

/** Long lists are written in pieces: one string of 200,000 pushes would exceed what V8 can hold. */
const piece = 500;

async function writePushes(response: Response, pushes: Iterable<Push>, tail: object) {
  response.type("json").write('{"data":[');
  let separator = "";
  let batch: string[] = [];
  const flush = async () => {
    if (batch.length === 0) return;
    const more = response.write(separator + batch.join(","));
    separator = ",";
    batch = [];
    if (!more) await Promise.race([once(response, "drain"), once(response, "close")]);
  };
  for (const push of pushes) {
    batch.push(JSON.stringify(push));
    if (batch.length >= piece) await flush();
    if (response.destroyed) return;
  }
  await flush();
  response.end(`],${JSON.stringify(tail).slice(1)}`);
}

/**
 * The control server, plain HTTP and meant for localhost: it asks for no credential.
 *
 * `GET /pushes?provider=&token=&status=&since=` → `{ data: [push], next, dropped }`, oldest first; `since` is a cursor (what
 * `next` gave: only later ones) or an ISO time (that moment or later). `DELETE /pushes` → 204. `GET /stats`.
 * `GET|PUT|DELETE /script`. `GET /events`: pushes as server-sent events. `GET /info`, `GET /ca.pem`, `GET /livez`, `GET /`: the page.
 * Errors are `{ errors: [message] }`: 400 not JSON, 404, 422 every problem at once.
 */
export async function startControl({ log, script, host, publicHost, port, addresses, connections }: ControlOptions) {
  const app = express();
  app.disable("x-powered-by");
  // The body is JSON whatever it is called: curl says otherwise unless told.
  const json = express.json({ limit: maxBody, type: () => true, strict: false });

  app.get("/", (_request, response) => {
    const { html, policy } = page();
    response.set("Content-Security-Policy", policy).type("html").send(html);
  });
  app.get("/livez", (_request, response) => void response.send("ok"));
  app.get("/info", (_request, response) => void response.json(addresses()));
  app.get("/ca.pem", (_request, response) => void response.type("application/x-pem-file").send(addresses().ca));
  app.get("/events", (request, response) => streamPushes(log, request, response));

  app.get("/pushes", async (request, response) => {
    const query = PushQuery.safeParse(request.query);
    if (!query.success) {
      response
        .status(422)
        .json({ errors: query.error.issues.map(({ path, message }) => `${path.join(".") || "query"}: ${message}`) });
      return;
    }
    const filter: PushFilter = query.data;
    const tail = { next: log.cursor(), dropped: log.dropped() };
    await writePushes(response, log.pushes(filter), tail);
  });
  app.delete("/pushes", (_request, response) => {
    log.clear();
    response.status(204).end();
  });
  app.get("/stats", (_request, response) => void response.json({ data: log.stats(), connections: connections() }));

  app.get("/script", (_request, response) => void response.json(script.show()));
  app.put("/script", json, (request, response) => {
    script.replace(request.body);
    response.json(script.show());
  });
  app.delete("/script", (_request, response) => {
    script.replace([]);
    response.status(204).end();
  });

  app.use((request, response) => {
    response.status(404).json({ errors: [`${request.method} ${request.path}: no such route`] });
  });
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) return next(error);
    if (error instanceof InvalidScript) return void response.status(422).json({ errors: error.errors });
    const status = z.object({ status: z.int().min(400).max(499) }).safeParse(error).data?.status ?? 500;
    const message =
      status === 500 ? "the simulator failed" : `body: ${error instanceof Error ? error.message : "not JSON"}`;
    response.status(status).json({ errors: [message] });
  });

  const server = createServer(app);
  server.listen(port, host);
  await once(server, "listening");
  return {
    url: `http://${publicHost}:${(server.address() as AddressInfo).port}`,
    async stop(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
