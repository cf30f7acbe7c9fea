import { errors, Problem } from "@herald/contracts";
import { errorsOf } from "@herald/docs";
import type { z } from "zod";
import type { Route } from "../src/http/route.ts";
import { allRoutes } from "../src/routes/all-routes.ts";

const patterns = allRoutes.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
}));

/** The route of the API that answers a request. A literal path takes precedence over a parameter. */
export const routeOf = (method: string, path: string): Route | undefined => {
  const matching = patterns.filter(({ pattern }) => pattern.test(path));
  const literal = matching.filter(({ route }) => route.path === path);
  return (literal.length > 0 ? literal : matching).find(({ route }) => route.method === method.toLowerCase())?.route;
};

const keysOf = (value: unknown): string[] =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [];

/** The body must parse, and its top level may contain only fields of its schema. */
const fits = (schema: z.ZodType, body: unknown, what: string): void => {
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw new Error(`${what}: the body is not what is documented: ${parsed.error.message}`);
  const unknown = keysOf(body).filter((key) => !keysOf(parsed.data).includes(key));
  if (unknown.length > 0) throw new Error(`${what}: the body has undocumented fields: ${unknown.join(", ")}`);
};

/**
 * Fails if a response differs from the OpenAPI document for its route: the status, the schema of the body, the media type and the headers
 * of an error.
 */
export const checkDocumented = (
  method: string,
  path: string,
  { status, headers, body }: { status: number; headers: Headers; body: unknown },
): void => {
  const what = `${method} ${path} → ${status}`;
  if (!headers.get("x-request-id")) throw new Error(`${what}: there is no X-Request-Id`);
  if (status >= 400) {
    if (headers.get("content-type") !== "application/problem+json; charset=utf-8") {
      throw new Error(`${what}: the media type is ${headers.get("content-type")}`);
    }
    fits(Problem, body, what);
    if (status === 401 && !headers.get("www-authenticate")) throw new Error(`${what}: WWW-Authenticate is missing`);
    if ((status === 429 || status === 503) && !headers.get("retry-after")) {
      throw new Error(`${what}: Retry-After is missing`);
    }
  }
  const route = method === "OPTIONS" ? undefined : routeOf(method, path.split("?", 1)[0] ?? "");
  if (route === undefined) return;
  if (status >= 400) {
    const documented = errorsOf(route).map((code) => errors[code].status as number);
    if (!documented.includes(status)) throw new Error(`${what}: the status is not documented`);
    return;
  }
  const answer = route.responses[status];
  if (answer === undefined) throw new Error(`${what}: the status is not documented`);
  if (answer.schema === undefined && body !== undefined) throw new Error(`${what}: a body where none is documented`);
  // The tests of streams check the content of streams.
  if (answer.schema !== undefined && !answer.stream && !answer.download) fits(answer.schema, body, what);
};
