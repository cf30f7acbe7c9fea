import { AsyncLocalStorage } from "node:async_hooks";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { HttpRoute, RouteMatch } from "@herald/kit";
import { expect, test } from "vitest";
import { allRoutes } from "../routes/all-routes.ts";
import { serveGateway } from "./http-routes.ts";
import { httpRouteOf, type Route } from "./route.ts";

type Served = { readonly route: Route; readonly match: RouteMatch };

const served: Served[] = [];
const counted: IncomingMessage[] = [];
const declaredWith = (serveOf: (route: Route) => HttpRoute["serve"]): HttpRoute[] =>
  allRoutes.map((route) => ({ ...httpRouteOf(route), serve: serveOf(route) }));

const serveRequest = serveGateway(
  declaredWith((route) => async (_request, _response, match) => void served.push({ route, match })),
  [],
  async (one) => void counted.push(one),
  { docs: "" },
);
const send = (method: string, url: string) => {
  const request = Object.assign(new IncomingMessage(new Socket()), { method, url });
  const response = new ServerResponse(request);
  return { request, response, done: serveRequest(request, response) };
};

test.each(allRoutes.map((route) => [route.operationId, route] as const))(
  "finds %s, with its parameters",
  async (_, route) => {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const path = route.path.replaceAll(/\{(\w+)\}/g, "x-$1.~1");
    await send(route.method.toUpperCase(), `${path}?page=1`).done;
    expect(served.at(-1)).toEqual({
      route,
      match: {
        params: Object.fromEntries(names.map((name) => [name, `x-${name}.~1`])),
        path,
        query: "page=1",
        allow: expect.stringContaining(route.method.toUpperCase()),
      },
    });
    expect(httpRouteOf(route).pattern).toBe(route.path.replaceAll("{", ":").replaceAll("}", ""));
  },
);

test.each([
  ["HEAD", "/api/v1/devices", {}],
  ["GET", "/api/v1/devices/", {}],
  ["GET", "/api/v1/devices/dev_%31", { id: "dev_1" }],
  ["GET", "/api/v1/devices/dev_1;x", { id: "dev_1;x" }],
  ["GET", "/api/v1/devices/%2e%2E%2f", { id: "../" }],
  ["GET", `/api/v1/devices/${"x".repeat(9_000)}`, { id: "x".repeat(9_000) }],
  ["GET", "http://herald.example/api/v1/devices", {}],
])("serves %s %s, however it is encoded", async (method, url, params) => {
  await send(method, url).done;
  expect(served.at(-1)?.match).toMatchObject({ params, path: url });
});

test.each([
  ["PATCH", "/api/v1/devices", "GET, HEAD, POST, PUT"],
  ["get", "/api/v1/devices", "GET, HEAD, POST, PUT"],
  ["GET", "/admin/v1/dead-letters/replay", "POST"],
  ["POST", "/docs", "GET, HEAD"],
])("refuses %s %s with the methods that the path has, and counts the client", async (method, url, allow) => {
  const { request, done } = send(method, url);
  await expect(done).rejects.toMatchObject({ code: "method-not-allowed", headers: { allow } });
  expect(counted.at(-1)).toBe(request);
});

test.each([
  ["GET", "/api/v1/devices/%ff", "malformed-request"],
  ["GET", "/%", "malformed-request"],
  ["GET", "/api/v1/nothing/%E0%A4%A", "malformed-request"],
  ["GET", "//api/v1/devices", "route-not-found"],
  ["GET", "/api/v1//devices", "route-not-found"],
  ["GET", "/api/v1/Devices", "route-not-found"],
  ["GET", "/api/v1/nothing", "route-not-found"],
  ["OPTIONS", "*", "route-not-found"],
])("refuses %s %s as %s, and counts the client", async (method, url, code) => {
  const { request, done } = send(method, url);
  await expect(done).rejects.toMatchObject({ code });
  expect(counted.at(-1)).toBe(request);
});

test("counts OPTIONS, but not a browser's preflight", async () => {
  const options = async (url: string) => {
    const { request, response, done } = send("OPTIONS", url);
    await done;
    return { status: response.statusCode, counted: counted.includes(request) };
  };
  expect(await options("/api/v1/notifications/ntf_1/open")).toEqual({ status: 204, counted: false });
  expect(await options("/api/v1/devices")).toEqual({ status: 204, counted: true });
});

test("receipts are served a few in each turn, in their order, and other requests and opens at once", async () => {
  const requestIds = new AsyncLocalStorage<string>();
  const begun: (string | undefined)[] = [];
  const serve = async () => void begun.push(requestIds.getStore());
  const serveInTurns = serveGateway(
    declaredWith(() => serve),
    [],
    async () => {},
    { docs: "" },
  );
  const pass = (method: string, path: string, id: string): IncomingMessage => {
    const request = Object.assign(new IncomingMessage(new Socket()), { method, url: path });
    requestIds.run(id, () => void serveInTurns(request, new ServerResponse(request)));
    return request;
  };
  const receipts = Array.from({ length: 40 }, (_, at) => `receipt ${at}`);
  const [first] = receipts.map((id, at) =>
    pass("PUT", `/api/v1/notifications/ntf_1/${at % 2 ? "received?x=1" : "dismissed/"}`, id),
  );
  pass("POST", "/api/v1/notifications", "send");
  pass("PUT", "/api/v1/notifications/ntf_1/open", "open");
  first?.destroy();

  expect(begun).toEqual(["send", "open"]);
  await setImmediate();
  expect(begun.slice(2)).toEqual(receipts.slice(1, 32));
  await setImmediate();
  expect(begun.slice(2)).toEqual(receipts.slice(1));
  pass("PUT", "/api/v1/notifications/ntf_1/received", "a later one");
  await setImmediate();
  expect(begun.at(-1)).toBe("a later one");
});
