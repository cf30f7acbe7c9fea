import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { allRoutes } from "../routes/all-routes.ts";
import { directRoutes } from "./direct-routes.ts";
import { expressPath, type Route } from "./route.ts";
import type { Asked, ServeRoute } from "./serve-route.ts";

type Served = { readonly route: Route; readonly asked: Asked };

const served: Served[] = [];
const find = directRoutes(
  new Map(
    allRoutes.map((route): [Route, ServeRoute] => [
      route,
      async (_request, _response, asked) => void served.push({ route, asked }),
    ]),
  ),
);
const request = (method: string, url: string) => Object.assign(new IncomingMessage(new Socket()), { method, url });

test.each(allRoutes.map((route) => [route.operationId, route] as const))(
  "finds %s, with its parameters",
  async (_, route) => {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const url = `${route.path.replaceAll(/\{(\w+)\}/g, "x-$1.~1")}?page=1`;
    const sent = request(route.method.toUpperCase(), url);
    const found = find(sent);
    expect(found?.pattern).toBe(expressPath(route));
    await found?.serve(sent, new ServerResponse(sent));
    expect(served.at(-1)).toEqual({
      route,
      asked: { params: Object.fromEntries(names.map((name) => [name, `x-${name}.~1`])), url },
    });
  },
);

test.each([
  ["HEAD", "/api/v1/devices"],
  ["OPTIONS", "/api/v1/identification"],
  ["get", "/api/v1/devices"],
  ["PATCH", "/api/v1/devices"],
  ["GET", "/api/v1/devices/"],
  ["GET", "//api/v1/devices"],
  ["GET", "/api/v1//devices"],
  ["GET", "/api/v1/Devices"],
  ["GET", "/api/v1/devices/dev_%31"],
  ["GET", "/api/v1/devices/dev_1;x"],
  ["GET", "http://herald.example/api/v1/devices"],
  ["GET", "/admin/v1/dead-letters/replay"],
  ["GET", "/api/v1/nothing"],
  ["GET", "/"],
  ["GET", "*"],
  ["GET", "/docs"],
])("leaves %s %s to express", (method, url) => {
  expect(find(request(method, url))).toBeUndefined();
});
