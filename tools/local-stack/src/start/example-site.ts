import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { text } from "node:stream/consumers";
import { bundleWebKit } from "@herald/bundle";
import { Herald } from "@herald/client";
import { foreignSite } from "@herald/simulators/foreign-site";
import type { DemoProject } from "./demo-project.ts";

type Options = { root: string; port: number; gateway: string; project: DemoProject };

type Reply = { status: number; type: string; body: string | Buffer };

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

const json = (status: number, body: unknown): Reply => ({
  status,
  type: "application/json",
  body: JSON.stringify(body),
});

/**
 * The site of `examples/web` with the browser kit and a backend: `POST /session { user }` logs any user in, and
 * `POST /send { notification }` sends with the project's token. For this machine only: 421 to a page of another site.
 */
export async function startExampleSite({ root, port, gateway, project }: Options) {
  const folder = join(root, "examples/web");
  const herald = new Herald({ url: gateway, token: project.token });
  const [kit, names] = await Promise.all([bundleWebKit(root), readdir(folder)]);

  const serveFile = async (path: string): Promise<Reply> => {
    const name = path === "/" ? "index.html" : path.slice(1);
    const type = types[extname(name)] ?? "text/plain; charset=utf-8";
    if (name in kit) return { status: 200, type, body: kit[name as keyof typeof kit] };
    if (names.includes(name)) return { status: 200, type, body: await readFile(join(folder, name)) };
    // Links of notifications lead to paths that the single-page app renders.
    if (extname(name) === "") return serveFile("/");
    return { status: 404, type: "text/plain", body: "not found" };
  };

  const act = async (path: string, request: IncomingMessage): Promise<Reply> => {
    // Other sites cannot send this content type without a CORS preflight.
    if (request.headers["content-type"] !== "application/json") return json(415, { errors: ["send application/json"] });
    const body = JSON.parse(await text(request));
    if (path === "/session") {
      const { id, identitySecret: secret } = project;
      return json(200, { user_token: await herald.users.token(String(body.user), { project: id, secret }) });
    }
    if (path !== "/send") return json(404, { errors: ["path: route not found"] });
    const answer = await fetch(`${gateway}/api/v1/notifications`, {
      method: "POST",
      headers: { authorization: `Bearer ${project.token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return json(answer.status, await answer.json());
  };

  const server = createServer(async (request, response) => {
    const reply = await answer(request).catch((error: Error) => json(400, { errors: [error.message] }));
    response.writeHead(reply.status, { "content-type": reply.type, "cache-control": "no-cache" }).end(reply.body);
  });
  const answer = async (request: IncomingMessage): Promise<Reply> => {
    const refusal = foreignSite(request.headers);
    if (refusal !== undefined) return json(421, { errors: [refusal] });
    const { pathname: path } = new URL(request.url ?? "/", "http://localhost");
    if (request.method === "POST") return act(path, request);
    if (path === "/config.json") return json(200, { gateway, project: project.id });
    return serveFile(path);
  };
  server.listen(port, "127.0.0.1");
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
