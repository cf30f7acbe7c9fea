import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allRoutes } from "../src/routes/all-routes.ts";
import { adminToken, type GatewayTest, startGatewayTest } from "./gateway-fixture.ts";
import { createWorld, partsOf } from "./new-world.ts";
import type { World } from "./route-case.ts";
import { table } from "./route-table.ts";

/** The routes that pages of other origins may call: exactly those that take a device credential, a user token or nothing. */
const forBrowsers = [
  "getDevice",
  "changeDevice",
  "deleteDevice",
  "identify",
  "changeMetadata",
  "putMetadata",
  "logOutDevice",
  "subscribeDevice",
  "unsubscribeDevice",
  "putDeviceToken",
  "deleteDeviceToken",
  "putControlToken",
  "deleteControlToken",
  "getDevicePreferences",
  "putDevicePreferences",
  "getUserPreferences",
  "putUserPreferences",
  "getDeviceActivity",
  "openNotification",
  "notificationReceived",
  "notificationDismissed",
  "getWebPushKey",
];

let system: GatewayTest;
let world: World;
beforeAll(async () => {
  system = await startGatewayTest({ environment: { HERALD_GATEWAY_LIMIT_FAILURES: "100000" } });
  world = await createWorld(system);
});
afterAll(() => system.stop());

test("the routes for browsers are those that a device, its user, or an app without a credential may call", () => {
  const ofApps = ["device", "user", "client"];
  const open = allRoutes.filter(
    ({ access, path }) => path.startsWith("/api/") && access.by.some((kind) => ofApps.includes(kind)),
  );
  expect(open.map(({ operationId }) => operationId).toSorted()).toEqual(forBrowsers.toSorted());
});

describe.each(allRoutes.map((route) => [`${route.method.toUpperCase()} ${route.path}`, route] as const))(
  "%s",
  (_, route) => {
    const isOpen = forBrowsers.includes(route.operationId);
    const origin = isOpen ? "*" : null;
    const one = table[route.operationId];
    const method = route.method.toUpperCase();
    const call = (headers: Record<string, string>, how = method, body?: string, surplus = "") => {
      const [, path = ""] = one?.route(world).split(" ") ?? [];
      return fetch(`${system.address()}${path}${path.includes("?") ? "&" : "?"}${surplus}`, {
        method: how,
        headers: { origin: "https://app.example.com", ...headers },
        ...(body === undefined ? {} : { body }),
      });
    };

    test(`answers a preflight ${isOpen ? "with all that a page sends" : "with nothing"}`, async () => {
      const { status, headers } = await call(
        { "access-control-request-method": method, "access-control-request-headers": "authorization,content-type" },
        "OPTIONS",
      );
      expect(status).toBe(204);
      expect(headers.get("access-control-allow-origin")).toBe(origin);
      if (!isOpen) return;
      expect(headers.get("access-control-allow-methods")?.split(", ")).toContain(method);
      const allowed = headers.get("access-control-allow-headers")?.toLowerCase().split(", ");
      expect(allowed).toEqual(expect.arrayContaining(["authorization", "content-type", "x-request-id"]));
      expect(Number(headers.get("access-control-max-age"))).toBeGreaterThan(0);
    });

    test(`${isOpen ? "lets" : "lets no"} page read its errors`, async () => {
      const json = { "content-type": "application/json" };
      const body = method === "GET" ? undefined : "{";
      const refused = [
        await call(
          { authorization: `Bearer ${isOpen ? world.credential : "nonsense"}` },
          method,
          undefined,
          "surplus=1",
        ), // 422 or 401
        await call({ ...json, authorization: `Bearer ${adminToken}` }, method, body, "surplus=1"), // 400, 401 or 422
        await call({}, "LINK"), // 405
      ];
      for (const { status, headers } of refused) {
        expect(status).toBeGreaterThanOrEqual(400);
        expect(headers.get("access-control-allow-origin")).toBe(origin);
      }
    });

    const testIf = (concerns: boolean) => (concerns ? test : () => {});
    testIf(isOpen)("lets a page read its answer, with what is left of its limits", async () => {
      const own = await createWorld(system, ["credential", ...(one ? partsOf(one) : [])]);
      const [, path = ""] = one?.route(own).split(" ") ?? [];
      const { device_id: _, ...body } = { device_id: "", ...(one?.body?.(own) as object) };
      const { status, headers } = await fetch(system.address() + path, {
        method,
        headers: {
          // A user's token, too, would do for the routes of users.
          authorization: `Bearer ${route.access.by.some((kind) => kind === "device") ? own.credential : own.project.token}`,
          ...(one?.body && { "content-type": "application/json" }),
        },
        ...(one?.body && { body: JSON.stringify(body) }),
      });
      expect([status, headers.get("access-control-allow-origin")]).toEqual([one?.status, "*"]);
      const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(", ");
      expect(exposed).toEqual(expect.arrayContaining(["x-request-id", "retry-after", "ratelimit"]));
    });
  },
);
