import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
});
afterAll(() => system.stop());

describe("paths and methods", () => {
  test("an unknown path is a 404, a known one with another method a 405 that says which it has", async () => {
    expect((await system.call("GET /api/v1/nothing")).problem.type).toBe("/docs/errors#route-not-found");
    expect((await system.call("GET /api/v2/devices")).status).toBe(404);
    const wrong = await system.call("DELETE /api/v1/devices");
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, HEAD, POST, PUT"]);
    expect((await system.call("PATCH /admin/v1/projects")).headers.get("allow")).toBe("GET, HEAD, POST");
  });

  test("HEAD answers like GET, and a path may end in a slash", async () => {
    const { token } = project;
    const head = await system.call("HEAD /api/v1/devices", { token });
    expect([head.status, head.body]).toEqual([200, undefined]);
    expect((await system.call("GET /api/v1/devices/?per_page=1", { token })).status).toBe(200);
  });

  test("the root leads a browser to the documentation, and is a 404 for others", async () => {
    const open = (method: string, accept: string) =>
      fetch(system.address(), { method, redirect: "manual", headers: { accept } });
    for (const method of ["GET", "HEAD"]) {
      const page = await open(method, "text/html,application/xhtml+xml,*/*;q=0.8");
      expect([page.status, page.headers.get("location"), page.headers.get("vary")]).toEqual([302, "/docs", "accept"]);
      expect((await open(method, "*/*")).status).toBe(404);
    }
  });

  test("a problem points at each field", async () => {
    const { token } = project;
    const body = { notification: { title: 1, targets: ["all"], tilte: "x" } };
    const { problem } = await system.call("POST /api/v1/notifications?x=1", { token, body });
    expect(problem.problems.map(({ pointer, code }) => [pointer, code])).toEqual([
      ["x", "unknown-field"],
      ["#/notification/title", "invalid-type"],
      ["#/notification/tilte", "unknown-field"],
    ]);
    expect(problem.detail).toBe(`${problem.errors[0]}; and 2 more`);
    // The handler refuses it, not the schema.
    const forged = { project_id: project.id, token: "nonsense" };
    const open = await system.call("PUT /api/v1/notifications/ntf_06bq4ghm31tz5d2ns8y7k9w0ac/open", { body: forged });
    expect(open.problem.problems).toEqual([
      { pointer: "#/token", detail: "is not an open token", code: "open-token-invalid" },
    ]);
  });

  test("a literal path segment is not read as a parameter", async () => {
    const asked = await system.call("GET /admin/v1/dead-letters/replay");
    expect([asked.status, asked.headers.get("allow")]).toEqual([405, "POST"]);
    const options = await system.call("OPTIONS /admin/v1/dead-letters/replay");
    expect([options.status, options.headers.get("allow")]).toEqual([204, "POST"]);
  });

  test("an invalid path parameter is refused before any request to a service", async () => {
    const { token } = project;
    const before = system.peers.asked.length;
    for (const id of ["*", ">", "dev_*", "dev_.x", "%00", "dev_%00", "..%2f..", "%20", "ä", "dev_".padEnd(300, "a")]) {
      expect(
        (await system.call(`GET /api/v1/devices/${encodeURIComponent(decodeURIComponent(id))}`, { token })).status,
        id,
      ).toBe(404);
      expect((await system.call(`DELETE /api/v1/notifications/${encodeURIComponent(id)}`, { token })).status, id).toBe(
        404,
      );
    }
    expect((await system.call("GET /api/v1/devices/%E0%A4%A", { token })).status).toBe(400);
    const bad = await system.call(`PUT /api/v1/topics/${encodeURIComponent("a b")}/devices`, {
      token,
      body: { devices: ["dev_06bq4ghm31tz5d2ns8y7k9w0ac"] },
    });
    expect([bad.status, bad.problem.errors]).toEqual([422, ["id: must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -"]]);
    expect(system.peers.asked.length).toBe(before);
  });

  test("a client's request id is used", async () => {
    const named = await system.call("GET /api/v1/devices", {
      token: project.token,
      headers: { "x-request-id": "abc-1" },
    });
    expect(named.headers.get("x-request-id")).toBe("abc-1");
    const refused = await system.call("GET /api/v1/devices", { headers: { "x-request-id": "abc-2" } });
    expect(refused.problem.instance).toBe("abc-2");
  });

  test("answers are not kept by caches", async () => {
    const answer = await system.call("GET /api/v1/devices", { token: project.token });
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });
});

describe("browsers", () => {
  const fetchFrom = (method: string, path: string, headers: Record<string, string> = {}) =>
    fetch(system.address() + path, { method, headers: { origin: "https://app.example.com", ...headers } });

  test("may call the client's routes from any origin, and read what goes wrong", async () => {
    const ntf = "ntf_06bq4ghm31tz5d2ns8y7k9w0ac";
    for (const [path, methods] of [
      ["/api/v1/identification", "PUT"],
      ["/api/v1/metadata", "PATCH, PUT"],
      [`/api/v1/notifications/${ntf}/open`, "PUT"],
    ] as const) {
      const preflight = await fetchFrom("OPTIONS", path, { "access-control-request-method": "PUT" });
      expect(preflight.status).toBe(204);
      expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
      expect(preflight.headers.get("access-control-allow-methods")).toBe(methods);
      expect(preflight.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("content-type");
      expect(preflight.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("authorization");
      // This also holds for a body that never reached the route.
      const broken = await fetch(system.address() + path, {
        method: "PUT",
        body: "{",
        headers: { "content-type": "application/json" },
      });
      expect([broken.status, broken.headers.get("access-control-allow-origin")]).toEqual([400, "*"]);
      const wrongMethod = await fetchFrom("DELETE", path);
      expect([wrongMethod.status, wrongMethod.headers.get("access-control-allow-origin")]).toEqual([405, "*"]);
    }
  });

  test("may not call backend routes", async () => {
    for (const path of ["/api/v1/devices", "/api/v1/notifications", "/admin/v1/projects", "/api/v1/metadata/x"]) {
      const preflight = await fetchFrom("OPTIONS", path, { "access-control-request-method": "POST" });
      expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
    }
  });
});

describe("hostile connections", () => {
  const raw = async (text: string | Buffer): Promise<string> => {
    const { hostname, port } = new URL(system.address());
    const socket = connect(Number(port), hostname);
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.write(text);
    await once(socket, "close");
    return Buffer.concat(chunks).toString();
  };
  const head = `POST /api/v1/notifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer `;

  test.each([
    ["two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"],
    ["length and chunks", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a header without a name", ": x\r\n\r\n"],
    ["a bare line feed in a header", "X-A: a\nX-B: b\r\n\r\n"],
    ["a header of 20 kB", `X-A: ${"a".repeat(20_000)}\r\n\r\n`],
  ])("%s is refused and the connection closed", async (_, rest) => {
    const answer = await raw(`${head}${project.token}\r\nConnection: close\r\n${rest}`);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
  });

  test("a body that is compressed to grow is stopped at its limit", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, " "));
    const answer = await new Promise<number | undefined>((resolve, reject) => {
      const sent = request(
        `${system.address()}/api/v1/notifications`,
        {
          method: "POST",
          headers: {
            authorization: `Bearer ${project.token}`,
            "content-type": "application/json",
            "content-encoding": "gzip",
          },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode);
        },
      );
      sent.on("error", reject);
      sent.end(bomb);
    });
    expect(answer).toBe(413);
  });
});
