import { errors } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { allRoutes } from "../routes/all-routes.ts";
import { describeRoutes, errorsOf } from "./describe-routes.ts";

const document = describeRoutes(allRoutes);

test("the document in docs/reference is this one; a change of the interface is a diff (vitest run -u)", async () => {
  const text = `${JSON.stringify(document, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot("../../../../docs/reference/openapi.json");
});

describe("every route", () => {
  test("has a path and method, and an operation id, that no other has", () => {
    const places = allRoutes.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(places).size).toBe(places.length);
    expect(new Set(allRoutes.map(({ operationId }) => operationId)).size).toBe(places.length);
  });

  test.each(allRoutes.map((route) => [route.operationId, route] as const))(
    "%s declares what follows from it",
    (_, route) => {
      const statuses = new Set<number>(errorsOf(route).map((code) => errors[code].status));
      expect(statuses.has(401)).toBe(route.access.by.some((kind) => kind !== "client"));
      expect(statuses.has(413)).toBe(route.body !== undefined);
      expect(route.path.match(/\{\w+\}/g)?.length ?? 0).toBe(Object.keys(route.params ?? {}).length);
      expect(Object.keys(route.answers).every((status) => Number(status) < 300)).toBe(true);
      // What the admin token opens is apart, so that a proxy can keep it inside.
      expect(route.path.startsWith("/admin/v1/")).toBe(route.access.by.includes("admin"));
    },
  );
});
