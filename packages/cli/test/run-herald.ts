import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Writable } from "node:stream";
import { onTestFinished } from "vitest";
import { run } from "../src/run.ts";
import type { Surroundings } from "../src/terminal/terminal.ts";

/** Runs the command line in a home folder, as in a pipe or at a terminal. */
export const createHerald =
  (home: () => string, isTTY = false) =>
  async (words: readonly string[], env: Record<string, string> = {}, written = { stdout: "", stderr: "" }) => {
    const stream = (name: keyof typeof written) => {
      const write = (chunk: unknown, _: unknown, done: () => void) => {
        written[name] += String(chunk);
        done();
      };
      return Object.assign(new Writable({ write }), { isTTY });
    };
    const surroundings = {
      env: { HOME: home(), ...env },
      stdin: { isTTY },
      stdout: stream("stdout"),
      stderr: stream("stderr"),
    };
    const exitCode = await run(words, surroundings as unknown as Surroundings);
    return { exitCode, ...written };
  };

type Step = (response: ServerResponse) => void;

export const answer =
  (status: number, body?: unknown, headers: Record<string, string> = {}): Step =>
  (response) => {
    const type = status < 400 ? "application/json" : "application/problem+json";
    response.writeHead(status, { "content-type": type, ...headers });
    response.end(JSON.stringify(body));
  };

export const problem = (status: number, slug: string, errors = [`${slug}: in Herald's words`]) => ({
  errors,
  problems: [{ pointer: "/x", detail: "in Herald's words", code: "custom" }],
  type: `/docs/errors#${slug}`,
  title: slug,
  status,
  instance: "req-1",
});

/** Stands where a gateway would until the test ends. Answers each request by the next step, and all further ones by the last. */
export const startGateway = async (...steps: readonly Step[]) => {
  const asked: { url: string; token: string | undefined }[] = [];
  const server = createServer((request, response) => {
    asked.push({ url: request.url ?? "", token: request.headers.authorization?.slice(7) });
    (steps[asked.length - 1] ?? steps.at(-1))?.(response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
};
