import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, startScriptedServer } from "../test/scripted-server.ts";
import { HeraldAdmin } from "./admin.ts";
import { Herald } from "./herald.ts";

/** Routes for apps and browsers, which have a credential of their own or none. */
const forApps = [
  "identify",
  "changeMetadata",
  "putMetadata",
  "openNotification",
  "notificationReceived",
  "notificationDismissed",
  "getWebPushKey",
];
/** A sign-in by the identity provider, which only a browser can go through. */
const forBrowsers = ["getSignInWays", "beginSignIn", "finishSignIn"];
/** Methods that sign or verify without a request. */
const local = ["token", "verify"];

type Document = { paths: Record<string, Record<string, { operationId: string }>> };
// biome-ignore lint/suspicious/noExplicitAny: methods answer what they like
type Method = (...values: string[]) => any;

test("every route of the API that is not for apps has a method", async () => {
  const text = await readFile(join(import.meta.dirname, "../../../docs/reference/openapi.json"), "utf8");
  const operations = Object.entries((JSON.parse(text) as Document).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      operationId,
      pattern: new RegExp(`^${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
      literal: !path.includes("{"),
    })),
  );
  const pagination = { count: 0, page: 1, pages: 1, from: 0, to: 0, last: 1 };
  const leaving = new AbortController();
  const server = await startScriptedServer([
    (response, request) => {
      if (request.url.startsWith("/api/v1/events")) leaving.abort(new Error("enough"));
      if (request.url.startsWith("/api/v1/exports")) return void response.end();
      answer(200, { data: { completed_at: "now" }, pagination, next: null })(response, request);
    },
  ]);
  const options = { url: server.url, token: "x", maxRetries: 0 };
  const clients = [new Herald(options), new HeraldAdmin(options)] as const;
  for (const [name, resource] of clients.flatMap((client) => Object.entries(client))) {
    if (typeof resource === "function") await resource();
    for (const [method, call] of Object.entries<Method>(resource)) {
      if (local.includes(method)) continue;
      const values = name === "providers" ? ["p", "apns"] : ["a", "2030-01-31", "b"];
      if (method === "follow") {
        await expect(clients[0].events.follow({ signal: leaving.signal }).next()).rejects.toThrow("enough");
        continue;
      }
      if (method === "upload" || method === "uploadRecipients") {
        await call("a", (() => "{}") as unknown as string);
        continue;
      }
      if (method === "dryRunRecipients") {
        await call("a", "{}");
        continue;
      }
      if (name === "exports") {
        if (method !== "lines") await expect(call().next()).resolves.toMatchObject({ done: true });
        continue;
      }
      const made = call(...values) as { readonly pages?: () => AsyncIterable<unknown> };
      if (!made.pages) await made;
      else for await (const _ of made.pages());
    }
  }
  for (const provider of ["fcm", "webpush"] as const) {
    const { providers } = new HeraldAdmin(options);
    await providers.get("p", provider);
    await providers.delete("p", provider);
    await providers.test("p", provider, { token: "a" });
    await providers.set("p", provider as "webpush", { subject: "mailto:a@b.example" });
  }

  const called = new Set<string>();
  for (const { method, url } of server.taken) {
    const matching = operations.filter(({ pattern }) => pattern.test(`${method} ${url.split("?")[0]}`));
    const { operationId } = matching.find(({ literal }) => literal) ??
      matching[0] ?? { operationId: `${method} ${url}` };
    called.add(operationId);
  }
  const wanted = operations
    .map(({ operationId }) => operationId)
    .filter((id) => !forApps.includes(id) && !forBrowsers.includes(id));
  expect([...called].toSorted()).toEqual(wanted.toSorted());
});
