import type { Router } from "express";
import type { Route } from "../http/route.ts";
import { describeRoutes } from "../openapi/describe-routes.ts";

/** Adds `/openapi.json`. */
export const mountDocs = (router: Router, routes: readonly Route[]): void => {
  const document = JSON.stringify(describeRoutes(routes));
  router.get("/openapi.json", (_request, response) => {
    response
      .set({ "content-type": "application/json; charset=utf-8", "access-control-allow-origin": "*" })
      .send(document);
  });
};
