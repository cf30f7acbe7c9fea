import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";
import type { World } from "./route-case.ts";

let system: GatewayTest;
let world: World;
beforeAll(async () => {
  system = await startGatewayTest();
  world = await createWorld(system, ["importId", "recipientsId"]);
});
afterAll(() => system.stop());

/** Uploads lines without an end, and resolves to the response once the gateway has disconnected. */
const uploadWithoutEnd = async (path: string): Promise<string> => {
  const { port } = new URL(system.address());
  // A backend that closes its side as soon as it is answered would hide how the gateway ends the connection.
  const socket = connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  socket.on("error", () => {});
  const lines = `${JSON.stringify({ target: "user:a" })}\n`.repeat(100);
  const piece = `${lines.length.toString(16)}\r\n${lines}\r\n`;
  const send = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", send);
  const headers = [
    `PUT ${path} HTTP/1.1`,
    "Host: a",
    `Authorization: Bearer ${world.project.token}`,
    "Content-Type: application/x-ndjson",
    "Transfer-Encoding: chunked",
  ];
  socket.write(`${headers.join("\r\n")}\r\n\r\n`);
  send();
  await expect.poll(() => socket.closed).toBe(true);
  return answer;
};

// Each waits two seconds for a client that goes on sending.
test.concurrent.each([
  ["before its lines", ({ recipientsId }: World) => `notifications/${recipientsId}/recipients?after_line=7`, 409],
  ["as an import", ({ importId }: World) => `imports/${importId}/content?after_line=7`, 409],
  // No service stores its first chunk.
  ["amid its lines", ({ recipientsId }: World) => `notifications/${recipientsId}/recipients`, 503],
] as const)(
  "an upload without an end that is refused %s gets its answer, and then no connection",
  async (_, path, status) => {
    const answer = await uploadWithoutEnd(`/api/v1/${path(world)}`);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*application/problem\\+json.*\\}\n$`, "s"));
  },
);
