import { hash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errors, events } from "@herald/contracts";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allRoutes, publicRoutes } from "../../../../services/gateway/src/routes/all-routes.ts";
import { writeDocs } from "./write-docs.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-docs-"));
  await writeDocs(folder);
});
afterAll(() => rm(folder, { recursive: true }));

describe.each([
  { port: "all", routes: allRoutes },
  { port: "public", routes: publicRoutes },
])("the documents of $port routes", ({ port, routes }) => {
  const read = (file: string) => readFile(join(folder, port, file), "utf8");

  test("openapi.json is valid OpenAPI 3.1 and has every route with every status it can answer, and no other", async () => {
    const document = JSON.parse(await read("openapi.json"));
    expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true });
    expect(document.openapi).toMatch(/^3\.1\./);
    for (const route of routes) {
      const operation = document.paths[route.path][route.method];
      expect(operation.operationId).toBe(route.operationId);
      const wanted = [...Object.keys(route.responses), "422", "429", "503"];
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(wanted));
      expect(Object.keys(operation.responses)).not.toContain("500");
    }
    const declared = Object.values(document.paths).flatMap((methods) => Object.keys(methods as object));
    expect(declared).toHaveLength(routes.length);
  });

  test("asyncapi.json has every event", async () => {
    const { asyncapi, channels } = JSON.parse(await read("asyncapi.json"));
    expect(asyncapi).toBe("3.1.0");
    expect(Object.keys(channels)).toEqual(Object.keys(events));
  });

  test.each([
    ["docs.html", routes.map(({ operationId }) => operationId)],
    ["docs/errors.html", Object.keys(errors)],
    ["docs/events.html", Object.keys(events)],
  ])("%s stands alone: one script of its own, nothing loaded, every link has its target", async (file, listed) => {
    const html = await read(file);
    const hashOf = (tag: string) =>
      `'sha256-${hash("sha256", html.split(`<${tag}>`)[1]?.split(`</${tag}>`)[0] ?? "", "base64")}'`;
    expect(await read("policy.txt")).toContain(
      `default-src 'none'; style-src ${hashOf("style")}; script-src ${hashOf("script")}; connect-src 'self'; `,
    );
    expect(html.match(/<script/gi)).toHaveLength(1);
    expect(html).not.toMatch(/<img|<link|@import|url\(/i);
    const script = html.split("<script>")[1]?.split("</script>")[0] ?? "";
    expect(script).not.toMatch(/localStorage|cookie|eval\(|innerHTML/i);
    const anchors = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const [, target] of html.matchAll(/href="#([^"]+)"/g)) expect(anchors).toContain(target);
    for (const id of listed) expect(anchors).toContain(id);
  });
});
