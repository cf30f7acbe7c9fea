import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express, { type NextFunction, type Request, type Response } from "express";
import { z } from "zod";
import { ChannelOptions } from "../apns/channels.ts";
import { InstanceOptions } from "../apns/instances.ts";
import { PhoneOptions } from "../apns/phones.ts";
import { ApnsKeyBody } from "../apns/provider-token.ts";
import type { ApnsSimulator } from "../apns/server.ts";
import type { Deps } from "../deps.ts";
import type { FcmSimulator } from "../fcm/server.ts";
import { foreignSite } from "../foreign-site.ts";
import { PushQuery } from "../push-log.ts";
import { InvalidScript, schemaProblems } from "../script/rule.ts";
import type { WebPushSimulator } from "../webpush/server.ts";
import { SubscribeOptions } from "../webpush/subscriptions.ts";
import { lockScreenPage } from "./page.ts";
import { streamPushes, writePushes } from "./pushes.ts";

interface ControlOptions {
  /** The origin to which the page sends opens. */
  readonly gateway?: string | undefined;
  readonly apns: ApnsSimulator;
  readonly fcm: FcmSimulator;
  readonly webpush: WebPushSimulator;
}

/** Enough for a script of a thousand rules with bodies. */
const maxBody = "4mb";

/**
 * The control server: plain HTTP without credentials, for localhost only.
 *
 * `GET /pushes?provider=&token=&status=&since=` → `{ data: [push], next, dropped }`, oldest first; `since` is a cursor (the `next` of an
 * answer: only later pushes) or an ISO time (that moment or later). `DELETE /pushes` → 204. `GET /stats`.
 * `GET|PUT|DELETE /script`. `POST /webpush/subscriptions { applicationServerKey?, prefix? }` → 201, a browser's subscription;
 * `DELETE /webpush/subscriptions/{id}` ends it. `PUT /apns/keys [{ keyId, teamId, publicKey }]` verifies these teams' tokens from now on.
 * `POST /apns/phones { app, ios?, controls? }` → 201 with the tokens of an app on a phone, each good for its own topic.
 * `GET /apns/instances?token=`, `POST /apns/instances { app, attributesType }`, `POST /apns/instances/{id}/token`: Live Activities.
 * `GET|POST|DELETE /apns/channels { app, count? }`: broadcast channels; those that a test makes are another sender's.
 * `GET /events`: pushes as server-sent events. `GET /info`, `GET /ca.pem`, `GET /livez`, `GET /`: the page.
 * Errors are `{ errors: [message] }`: 400 not JSON, 404, 421 from another site's page, 422 every problem at once.
 */
export async function startControl(
  { log, script, host, publicHost, identity: { ca } }: Deps,
  port: number,
  { gateway, apns, fcm, webpush }: ControlOptions,
) {
  const app = express();
  app.disable("x-powered-by");
  // Parse every body as JSON: curl sends another content type by default.
  const json = express.json({ limit: maxBody, type: () => true, strict: false });

  app.use((_request, response, next) => {
    // Ends the line, as the gateway does.
    response.json = (body) => response.type("json").send(`${JSON.stringify(body)}\n`);
    next();
  });
  app.use(({ headers }, response, next) => {
    const refusal = foreignSite(headers, [publicHost]);
    if (refusal === undefined) next();
    else response.status(421).json({ errors: [refusal] });
  });
  app.get("/", (_request, response) => {
    const { html, policy } = lockScreenPage(gateway);
    response.set("Content-Security-Policy", policy).type("html").send(html);
  });
  app.get("/livez", (_request, response) => void response.send("ok"));
  app.get(
    "/info",
    (_request, response) =>
      void response.json({ apns: apns.url, fcm: fcm.url, webpush: webpush.url, control: url, ca }),
  );
  app.get("/ca.pem", (_request, response) => void response.type("application/x-pem-file").send(ca));
  app.get("/events", (request, response) => streamPushes(log, request, response));

  app.get("/pushes", async (request, response) => {
    const pushes = log.pushes(PushQuery.parse(request.query));
    await writePushes(response, pushes, { next: log.cursor(), dropped: log.dropped() });
  });
  app.delete("/pushes", (_request, response) => {
    log.clear();
    response.status(204).end();
  });
  app.get("/stats", (_request, response) => {
    const connections = Object.fromEntries([apns, fcm, webpush].map((each) => [each.name, each.connectionCount()]));
    response.json({ data: log.stats(), connections, tokensIssued: fcm.tokensIssued() });
  });

  app.get("/script", (_request, response) => void response.json(script.show()));
  app.put("/script", json, (request, response) => {
    script.replace(request.body);
    response.json(script.show());
  });
  app.delete("/script", (_request, response) => {
    script.replace([]);
    response.status(204).end();
  });

  app.post("/webpush/subscriptions", json, (request, response) => {
    response.status(201).json(webpush.subscribe(SubscribeOptions.parse(request.body ?? {})));
  });
  app.delete("/webpush/subscriptions/:id", (request, response) => {
    if (webpush.unsubscribe(request.params.id)) response.status(204).end();
    else response.status(404).json({ errors: ["id: subscription not found; it is the last part of the endpoint"] });
  });
  app.put("/apns/keys", json, (request, response) => {
    apns.setKeys(z.array(ApnsKeyBody).parse(request.body));
    response.status(204).end();
  });

  app.post("/apns/phones", json, (request, response) => {
    response.status(201).json(apns.createPhone(PhoneOptions.parse(request.body ?? {})));
  });

  app.get("/apns/instances", (request, response) => {
    const { token } = z.object({ token: z.string().optional() }).parse(request.query);
    response.json({ data: apns.instances.list(token) });
  });
  app.delete("/apns/instances", (_request, response) => {
    apns.instances.clear();
    response.status(204).end();
  });
  app.post("/apns/instances", json, (request, response) => {
    response.status(201).json(apns.instances.create(InstanceOptions.parse(request.body ?? {})));
  });
  app.post("/apns/instances/:id/token", (request, response) => {
    const instance = apns.instances.rotate(request.params.id);
    if (instance) response.status(201).json(instance);
    else response.status(404).json({ errors: ["id: instance not found"] });
  });

  app.get("/apns/channels", (_request, response) => void response.json({ data: apns.channels.list() }));
  app.post("/apns/channels", json, (request, response) => {
    response.status(201).json({ data: apns.channels.add(ChannelOptions.parse(request.body ?? {})) });
  });
  app.delete("/apns/channels", (_request, response) => {
    apns.channels.clear();
    response.status(204).end();
  });

  app.use((request, response) => {
    response.status(404).json({ errors: [`${request.method} ${request.path}: route not found`] });
  });
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) return next(error);
    if (error instanceof InvalidScript) return void response.status(422).json({ errors: error.errors });
    if (error instanceof z.ZodError)
      return void response.status(422).json({ errors: schemaProblems(error, "request") });
    const status = z.object({ status: z.int().min(400).max(499) }).safeParse(error).data?.status ?? 500;
    const message =
      status === 500 ? "the simulator failed" : `body: ${error instanceof Error ? error.message : "not JSON"}`;
    response.status(status).json({ errors: [message] });
  });

  const server = createServer(app);
  // A client that looks every few seconds would often send on a connection that is just being closed.
  server.keepAliveTimeout = 65_000;
  server.listen(port, host);
  await once(server, "listening");
  const url = `http://${publicHost}:${(server.address() as AddressInfo).port}`;
  return {
    url,
    async stop(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
