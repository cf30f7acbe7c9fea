import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { allRoutes } from "../routes/all-routes.ts";
import { directRoutes } from "./direct-routes.ts";
import { type Route, routePattern } from "./route.ts";
import type { Asked, ServeRoute } from "./serve-route.ts";

type Served = { readonly route: Route; readonly asked: Asked };

const served: Served[] = [];
const admitted: IncomingMessage[] = [];
const find = directRoutes(
  new Map(
    allRoutes.map((route): [Route, ServeRoute] => [
      route,
      async (_request, _response, asked) => void served.push({ route, asked }),
    ]),
  ),
  async (one) => void admitted.push(one),
);
const request = (method: string, url: string) => Object.assign(new IncomingMessage(new Socket()), { method, url });

test.each(allRoutes.map((route) => [route.operationId, route] as const))(
  "finds %s, with its parameters",
  async (_, route) => {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const url = `${route.path.replaceAll(/\{(\w+)\}/g, "x-$1.~1")}?page=1`;
    const sent = request(route.method.toUpperCase(), url);
    const found = find(sent);
    expect(found?.pattern).toBe(routePattern(route));
    await found?.serve(sent, new ServerResponse(sent));
    expect(served.at(-1)).toEqual({
      route,
      asked: { params: Object.fromEntries(names.map((name) => [name, `x-${name}.~1`])), url },
    });
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
])("serves %s %s, however it is written", async (method, url, params) => {
  const sent = request(method, url);
  await find(sent)?.serve(sent, new ServerResponse(sent));
  expect(served.at(-1)?.asked).toEqual({ params, url });
});

test.each([
  ["PATCH", "/api/v1/devices", "GET, HEAD, POST"],
  ["get", "/api/v1/devices", "GET, HEAD, POST"],
  ["GET", "/admin/v1/dead-letters/replay", "POST"],
])("refuses %s %s, which has other methods, and counts who asked", async (method, url, allow) => {
  const sent = request(method, url);
  await expect(find(sent)?.serve(sent, new ServerResponse(sent))).rejects.toMatchObject({
    code: "method-not-allowed",
    headers: { allow },
  });
  expect(admitted.at(-1)).toBe(sent);
});

test.each(["/api/v1/devices/%ff", "/%", "/api/v1/nothing/%E0%A4%A"])(
  "%s is a bad path, and who asked is counted",
  async (url) => {
    const sent = request("GET", url);
    await expect(find(sent)?.serve(sent, new ServerResponse(sent))).rejects.toMatchObject({
      code: "malformed-request",
    });
    expect(admitted.at(-1)).toBe(sent);
  },
);

test("tells a browser what it may call without counting it, and anybody else what there is", async () => {
  const options = async (url: string) => {
    const sent = request("OPTIONS", url);
    const response = new ServerResponse(sent);
    await find(sent)?.serve(sent, response);
    return { status: response.statusCode, counted: admitted.includes(sent) };
  };
  expect(await options("/api/v1/notifications/ntf_1/open")).toEqual({ status: 204, counted: false });
  expect(await options("/api/v1/devices")).toEqual({ status: 204, counted: true });
});

test.each([
  ["GET", "//api/v1/devices"],
  ["GET", "/api/v1//devices"],
  ["GET", "/api/v1/Devices"],
  ["GET", "/api/v1/nothing"],
  ["GET", "/"],
  ["OPTIONS", "*"],
  ["GET", "/docs"],
])("leaves %s %s to express", (method, url) => {
  expect(find(request(method, url))).toBeUndefined();
});
