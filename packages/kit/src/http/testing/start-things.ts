import { connect } from "node:net";
import { Router } from "express";
import { z } from "zod";
import { HeraldError } from "../../herald-error.ts";
import { createLogger } from "../../logger.ts";
import { parseBody, parseParams, parseQuery } from "../../parse-request.ts";
import { currentRequestId } from "../../request-context.ts";
import { createHttpApp } from "../create-http-app.ts";
import { startHttp } from "../start-http.ts";

/** Bytes of a body. */
export const limit = 2_000;

const Thing = z.strictObject({ thing: z.strictObject({ name: z.string(), size: z.number().optional() }) });

/** A server of things, with a route for each way in which an answer can go wrong. */
export const startThings = async () => {
  const lines: string[] = [];
  const log = createLogger({ service: "test", level: "info", destination: { write: (line) => lines.push(line) } });
  const app = createHttpApp({ log, bodyLimitBytes: limit }, (router) => {
    const api = Router({ mergeParams: true });
    api.get("/things/:id", (request, response) => {
      const { id } = parseParams(z.strictObject({ id: z.string().max(3, "must have at most 3 characters") }), request);
      response.json({ id, requestId: currentRequestId() });
    });
    api.delete("/things/:id", () => {
      throw new HeraldError("topic-not-found", "id: no such thing");
    });
    api.post("/things", async (request, response) => {
      const { thing } = parseBody(Thing, request.body);
      response.status(201).json({ data: thing, requestId: currentRequestId() });
    });
    api.get("/things", (request, response) => {
      response.json(parseQuery(z.strictObject({ status: z.enum(["active", "inactive"]).optional() }), request));
    });
    api.get("/broken", async () => {
      throw new Error("hpt_0123456789abcdef went wrong");
    });
    api.get("/half", (_request, response) => {
      response.write("half");
      throw new Error("too late");
    });
    api.get("/away", () => {
      throw new HeraldError("bus-unavailable", "the bus is unavailable");
    });
    api.get("/closed", () => {
      throw new HeraldError("unauthenticated", "authorization: a project token is required");
    });
    router.use("/api/v1", api);
  });
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
