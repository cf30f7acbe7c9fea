import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { z } from "zod";
import { HeraldError } from "../src/herald-error.ts";
import { createHttpApp } from "../src/http/create-http-app.ts";
import { createReadBody } from "../src/http/json-body.ts";
import { type HttpRoute, serveRoutes } from "../src/http/serve-routes.ts";
import { startHttp } from "../src/http/start-http.ts";
import { createLogger } from "../src/logger.ts";
import { parseBody, parseQuery, parseSearch } from "../src/parse-request.ts";
import { currentOwnRequestId, currentRequestId } from "../src/request-context.ts";

/** Bytes of a body. */
export const limit = 2_000;

const ThingsQuery = z.strictObject({ status: z.enum(["active", "inactive"]).optional() });
const Thing = z.strictObject({ thing: z.strictObject({ name: z.string(), size: z.number().optional() }) });

/** A server of things, with a route for each way in which an answer can go wrong. */
export const startThings = async () => {
  const lines: string[] = [];
  const log = createLogger({ service: "test", level: "info", destination: { write: (line) => lines.push(line) } });
  const readBody = createReadBody(limit);
  const json = (response: ServerResponse, body: unknown, status = 200) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  const fail = (error: Error) => async () => {
    throw error;
  };
  const routes: readonly [string, string, HttpRoute["serve"]][] = [
    [
      "GET",
      "/things/:id",
      async (_request, response, { params: { id = "" } }) => {
        if (id.length > 3) throw new HeraldError("validation-failed", "id: must have at most 3 characters");
        response.setHeader("x-own-id", currentOwnRequestId() ?? "");
        json(response, { id, requestId: currentRequestId() });
      },
    ],
    ["DELETE", "/things/:id", fail(new HeraldError("topic-not-found", "id: topic not found"))],
    [
      "POST",
      "/things",
      async (request, response) => {
        const { thing } = parseBody(Thing, await readBody(request, () => {}));
        json(response, { data: thing, requestId: currentRequestId() }, 201);
      },
    ],
    [
      "GET",
      "/things",
      async (_request, response, match) => void json(response, parseQuery(ThingsQuery, parseSearch(match.query))),
    ],
    ["GET", "/broken", fail(new Error("hpt_0123456789abcdef went wrong"))],
    [
      "GET",
      "/half",
      async (_request, response) => {
        response.write("half");
        throw new Error("too late");
      },
    ],
    ["GET", "/away", fail(new HeraldError("bus-unavailable", "the bus is unavailable"))],
    ["GET", "/closed", fail(new HeraldError("unauthenticated", "authorization: a project token is required"))],
  ];
  const app = createHttpApp(
    log,
    serveRoutes(
      routes.map(([method, path, serve]) => ({ method, pattern: `/api/v1${path}`, serve })),
      { notFound: "route not found; GET /openapi.json lists all" },
    ),
  );
  const server = await startHttp(app, { host: "127.0.0.1", port: 0 });

  const call = async (method: string, path: string, options: RequestInit = {}) => {
    const response = await fetch(server.address + path, { method, ...options });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  };

  return {
    port: server.port,
    /** What was logged. */
    lines,
    call,
    post: (body: RequestInit["body"], headers: Record<string, string> = { "content-type": "application/json" }) =>
      call("POST", "/api/v1/things", { body: body ?? null, headers }),

    /** What comes back for bytes that no HTTP client would send, until the server closes. */
    raw: (bytes: string | Buffer): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(server.port, "127.0.0.1", () => socket.write(bytes));
        let answer = "";
        socket.setTimeout(5_000, () => socket.destroy(new Error(`no end; so far: ${answer.slice(0, 200)}`)));
        socket.on("data", (chunk) => {
          answer += chunk;
        });
        socket.on("error", reject);
        socket.on("close", () => resolve(answer));
      }),

    /** The first answer to bytes that leave a request unfinished. */
    firstAnswer: (bytes: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(server.port, "127.0.0.1", () => socket.write(bytes));
        socket.on("error", reject);
        socket.once("data", (chunk) => {
          socket.destroy();
          resolve(chunk.toString());
        });
      }),

    stop: () => server.stop(1_000),
  };
};

/** The problem details behind the headers of a raw answer. */
export const problemIn = (answer: string): { errors: string[]; status: number } => {
  if (!/content-type: application\/problem\+json/i.test(answer)) throw new Error(`no problem details: ${answer}`);
  return JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4));
};
