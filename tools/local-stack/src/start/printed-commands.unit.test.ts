import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { printedCommands } from "./printed-commands.ts";

/** The requests that the fake gateway and control server have received. */
const asked: { line: string; authorization: string | undefined; body: unknown }[] = [];
const pushes = [
  { token: "c0ffee", payload: { notification_id: "ntf_first", token: "v2.a.first" } },
  { token: "c0ffee", payload: { aps: {}, notification_id: "ntf_last", project_id: "prj_1", token: "v2.a.last_-" } },
];
const server = createServer(async (request, response) => {
  const text = await bodyOf(request);
  asked.push({
    line: `${request.method} ${request.url}`,
    authorization: request.headers.authorization,
    body: text ? JSON.parse(text) : undefined,
  });
  if (request.url === "/pushes") response.end(JSON.stringify({ data: pushes }));
  else response.writeHead(request.method === "PUT" ? 204 : 202).end();
});
const bodyOf = async (request: IncomingMessage) => Buffer.concat(await request.toArray()).toString();

let base: string;
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

test("each command works as printed in a POSIX shell", async () => {
  const commands = printedCommands({ gateway: base, control: base, project: { id: "prj_1", token: "hpt_secret" } });
  expect(commands.map(({ does }) => does)).toHaveLength(4);
  const outputs: string[] = [];
  for (const { command } of commands) outputs.push((await promisify(execFile)("sh", ["-c", command])).stdout);

  expect(asked.map(({ line }) => line)).toEqual([
    "POST /api/v1/devices",
    "POST /api/v1/notifications",
    "GET /pushes",
    "GET /pushes",
    "PUT /api/v1/notifications/ntf_last/open",
  ]);
  const [register, send, , , open] = asked;
  const { token } = (register?.body as { device: { token: string } } | undefined)?.device ?? { token: "" };
  expect(register).toMatchObject({ authorization: "Bearer hpt_secret", body: { device: { platform: "ios" } } });
  expect(token).toMatch(/^[0-9a-f]{64}$/);
  expect(send?.body).toMatchObject({ notification: { title: "Hello", targets: [`token:${token}`] } });
  expect(open).toMatchObject({ authorization: undefined, body: { project_id: "prj_1", token: "v2.a.last_-" } });
  expect(outputs[3]).toBe("204\n");
});
