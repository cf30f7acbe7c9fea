import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { bundleWebKit } from "@herald/bundle";
import { Herald } from "@herald/client";
import { foreignSite } from "@herald/simulators/foreign-site";
import express, { type NextFunction, type Request, type Response } from "express";
import type { DemoProject } from "./demo-project.ts";

type Options = { root: string; port: number; gateway: string; project: DemoProject };

/**
 * The site of `examples/web` with the browser kit and a backend: `POST /session { user }` logs any user in, and
 * `POST /send { notification }` sends with the project's token. For this machine only: 421 to a page of another site.
 */
export async function startExampleSite({ root, port, gateway, project }: Options) {
  const folder = join(root, "examples/web");
  const herald = new Herald({ url: gateway, token: project.token });
  const kit = await bundleWebKit(root);
  const site = express();
  site.use(({ headers }, response, next) => {
    response.set("cache-control", "no-cache");
    const refusal = foreignSite(headers);
    if (refusal === undefined) next();
    else response.status(421).json({ errors: [refusal] });
  });
  for (const [name, code] of Object.entries(kit))
    site.get(`/${name}`, (_request, response) => void response.type("js").send(code));
  site.get("/config.json", (_request, response) => void response.json({ gateway, project: project.id }));
  site.use(express.static(folder, { cacheControl: false }));
  // Links of notifications lead to paths that the single-page app renders.
  site.get(/^[^.]*$/, (_request, response) => response.sendFile("index.html", { root: folder, cacheControl: false }));

  site.post(/.*/, (request, response, next) => {
    // Other sites cannot send this content type without a CORS preflight.
    if (request.is("application/json")) next();
    else response.status(415).json({ errors: ["send application/json"] });
  });
  site.use(express.json({ limit: "1mb" }));
  site.post("/session", async ({ body }, response) => {
    const { id, identitySecret: secret } = project;
    response.json({ user_token: await herald.users.token(String(body.user), { project: id, secret }) });
  });
  site.post("/send", async ({ body }, response) => {
    const answer = await fetch(`${gateway}/api/v1/notifications`, {
      method: "POST",
      headers: { authorization: `Bearer ${project.token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    response.status(answer.status).json(await answer.json());
  });
  site.use((_request, response) => void response.status(404).json({ errors: ["path: route not found"] }));
  site.use((error: Error, _request: Request, response: Response, _next: NextFunction) => {
    response.status(400).json({ errors: [error.message] });
  });

  const server = site.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async (): Promise<void> => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
