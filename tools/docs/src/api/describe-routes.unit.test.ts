import { EventMessage, errors, events, NotificationContent } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { roleOf } from "../../../../services/gateway/src/auth/caller.ts";
import { allRoutes } from "../../../../services/gateway/src/routes/all-routes.ts";
import { describeRoutes, errorsOf } from "./describe-routes.ts";
import { type ApiDocument, renderReference } from "./render-reference.ts";

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
      const signsIn = route.path.startsWith("/admin/v1/sign-in");
      const statuses = new Set<number>(errorsOf(route).map((code) => errors[code].status));
      expect(statuses.has(401)).toBe(
        route.operationId === "finishSignIn" || route.access.by.some((kind) => kind !== "client"),
      );
      expect(statuses.has(413)).toBe(route.body !== undefined || route.upload !== undefined);
      expect(route.path.match(/\{\w+\}/g)?.length ?? 0).toBe(Object.keys(route.params ?? {}).length);
      expect(Object.keys(route.responses).every((status) => Number(status) < (signsIn ? 304 : 300))).toBe(true);
      // A prefix for admin routes lets a proxy keep them internal.
      expect(route.path.startsWith("/admin/v1/")).toBe(signsIn || route.access.by.includes("operator"));
    },
  );
});

const lists = allRoutes.filter(
  ({ operationId, query }) => /^(list|export)[A-Z]/.test(operationId) && query !== undefined,
);

test.each(lists.map((route) => [route.operationId, route] as const))("%s says in which order it is", (_, route) => {
  expect(`${route.summary} ${route.description ?? ""}`).toMatch(/(oldest|newest) first|by (id|line)|sorted by/i);
});

test("each query parameter says what it does", () => {
  for (const [path, operations] of Object.entries(document.paths ?? {}))
    for (const one of ["get", "put", "post", "delete"] as const)
      for (const parameter of operations?.[one]?.parameters ?? [])
        if ("in" in parameter && parameter.in === "query")
          expect(parameter.description, `${one} ${path} ${parameter.name}`).toBeTruthy();
});

test("the reference begins with sending", () => {
  const [first] = Object.values(document.paths ?? {});
  expect([document.tags?.[0]?.name, Object.keys(first ?? {})[0], first?.post?.operationId]).toEqual([
    "Notifications",
    "post",
    "sendNotification",
  ]);
});

describe("generators of clients find", () => {
  type Node = Readonly<Record<string, unknown>>;
  /** Each object of a part of the document, without those of examples, following references. */
  const nodes = (part: unknown, seen = new Set<unknown>()): Node[] => {
    if (typeof part !== "object" || part === null || seen.has(part)) return [];
    seen.add(part);
    const { $ref, example: _, examples: __, ...rest } = part as Node;
    const [, , kind = "", name = ""] = typeof $ref === "string" ? $ref.split("/") : [];
    const target = (document.components as Record<string, Node> | undefined)?.[kind]?.[name];
    return [part as Node, ...[target, ...Object.values(rest)].flatMap((one) => nodes(one, seen))];
  };
  const operations = Object.values(document.paths ?? {}).flatMap((path) =>
    (["get", "put", "post", "patch", "delete"] as const).flatMap((method) => path?.[method] ?? []),
  );
  const webhooks = Object.values(document.webhooks ?? {});

  test("no list of types but of one or null: they do not read it", () => {
    const lists = nodes(document).filter(({ type }) => Array.isArray(type) && !type.includes("null"));
    expect(lists).toEqual([]);
  });

  test("no closed enum and no closed object in what Herald writes: they refuse new values", () => {
    const written = [operations.map(({ responses }) => responses), webhooks].flatMap((part) => nodes(part));
    expect(written.filter((node) => Array.isArray(node.enum) || node.additionalProperties === false)).toEqual([]);
    const known = written.map((node) => node["x-extensible-enum"]);
    expect(known).toContainEqual([
      "proposed",
      "scheduled",
      "accepted",
      "sending",
      "paused",
      "completed",
      "cancelled",
      "expired",
    ]);
  });

  test("closed enums in what Herald reads", () => {
    const read = operations.flatMap(({ parameters, requestBody }) => nodes([parameters, requestBody]));
    expect(read.some((node) => "x-extensible-enum" in node)).toBe(false);
    expect(read.map((node) => node.enum)).toContainEqual(["ios", "android", "web"]);
  });

  test("the scopes and the role of each route", () => {
    for (const route of allRoutes) {
      const { security = [], description = "" } = document.paths?.[route.path]?.[route.method] ?? {};
      const needs = Object.assign({}, ...security);
      const { by, scopes } = route.access;
      if (by.includes("project")) {
        expect(needs.projectToken, route.operationId).toEqual(scopes);
        for (const scope of scopes ?? []) expect(description).toContain(`\`${scope}\``);
      }
      const role = roleOf(route.access);
      expect(needs.operatorToken, route.operationId).toEqual(role === undefined ? undefined : [role]);
    }
  });

  test("them on the page too", () => {
    const page = renderReference(document as unknown as ApiDocument);
    const [, about = ""] = page.split('id="createWebhook"');
    const [credential = ""] = /Credential: .*/.exec(about) ?? [];
    expect(credential).toContain("with the scope <code>read</code> and <code>send</code>");
    expect(credential).toContain("with the role <code>operator</code>");
    expect(credential).toMatch(/<\/code>\. Or an operator&#39;s token, .*\. Or an operator&#39;s session .*>\.<\/p>/);
  });

  test("each schema that is named, and none that is not", () => {
    const names = JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g);
    expect(new Set(Object.keys(document.components?.schemas ?? {}))).toEqual(
      new Set([...names].map(([, name]) => name)),
    );
  });
});

test.each(["Devices", "Notifications"])("the export of %s takes each filter of the list", (of) => {
  const paging = ["page", "per_page", "items", "limit", "sort"];
  const parametersOf = (operationId: string) =>
    Object.values(document.paths ?? {})
      .filter((path) => path?.get?.operationId === operationId)
      .flatMap((path) => path?.get?.parameters ?? [])
      .flatMap((parameter) => ("in" in parameter && parameter.in === "query" ? [parameter.name] : []));
  expect(parametersOf(`export${of}`)).toEqual(
    expect.arrayContaining(parametersOf(`list${of}`).filter((name) => !paging.includes(name))),
  );
});

type Media = { readonly content?: Readonly<Record<string, { readonly example?: unknown }>> };
const example = (media: unknown): unknown => Object.values((media as Media | undefined)?.content ?? {})[0]?.example;

/** Streams are shown as their text. */
const row = (shown: unknown): unknown =>
  typeof shown === "string" ? JSON.parse(shown.replace(/^id: .*\ndata: /, "")) : shown;

describe("the examples", () => {
  const operations = allRoutes.map(
    (route) => [route.operationId, route, document.paths?.[route.path]?.[route.method]] as const,
  );

  test.each(operations.filter(([, { body }]) => body !== undefined))(
    "%s takes the body of its example",
    (_, { body }, operation) => {
      expect(body?.safeParse(example(operation?.requestBody)).error?.issues).toBeUndefined();
    },
  );

  test.each(operations)("%s may answer what its examples say", (_, { responses }, operation) => {
    for (const [status, { schema }] of Object.entries(responses))
      if (schema !== undefined) {
        const shown = row(example(operation?.responses?.[status as "200"]));
        expect(schema.safeParse(shown).error?.issues).toBeUndefined();
      }
  });

  test("of an error say which it is", () => {
    for (const response of Object.values(document.components?.responses ?? {}))
      expect(example(response)).toMatchObject({ type: expect.stringMatching(/^\/docs\/errors#[a-z-]+$/) });
  });

  test.each(Object.entries(document.webhooks ?? {}))("the webhook %s is posted as its contract says", (type, path) => {
    const message = example((path as { post: { requestBody: unknown } }).post.requestBody);
    const contract = Object.values(events).find(({ ceType }) => ceType === type);
    expect(EventMessage.parse(message)).toMatchObject({ type });
    expect(contract?.schema.safeParse((message as EventMessage).data).error).toBeUndefined();
  });
});

test("every field of a notification says what it is on each platform, with an example", () => {
  for (const [name, field] of Object.entries(NotificationContent.shape)) {
    const { description, examples } = { ...field.unwrap?.().meta?.(), ...field.meta() };
    expect(description, name).toBeTruthy();
    expect(examples, name).toHaveLength(1);
  }
});
