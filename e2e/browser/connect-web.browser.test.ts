import { once } from "node:events";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { Herald } from "@herald/client";
import { eventually } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { buildPackage } from "../../infra/release/package.ts";
import { codeBlocks, shellBlocks } from "../harness/shell-blocks.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { type Browser, startBrowser } from "./browser.ts";
import { test } from "./shared-system.ts";

const root = join(import.meta.dirname, "../..");

let system: System;
let browser: Browser;
let folder: string;
let site: string;
const server = createServer(async (request, response) => {
  const name = request.url === "/" ? "index.html" : String(request.url).slice(1);
  const type = extname(name) === ".js" ? "text/javascript" : "text/html";
  const file = await readFile(join(folder, name)).catch(() => undefined);
  response.writeHead(file ? 200 : 404, { "content-type": type }).end(file);
});
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  folder = await mkdtemp(join(tmpdir(), "herald-site-"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await startBrowser(system);
});
afterAll(async () => {
  await browser?.close();
  server.close();
  await rm(folder, { recursive: true, force: true });
});
logOnFailure(() => system);

test("the page on web apps, followed in a fresh folder, subscribes a browser; so does a worker that imports Herald's", async () => {
  const page = await readFile(join(root, "docs/how-to/connect-web.md"), "utf8");
  expect(shellBlocks(page, "1. Install")).toEqual(["npm install @herald/web\n"]);
  // What that installs, as a release packs it.
  const installed = join(folder, "node_modules/@herald/web");
  await buildPackage(root, "web", installed);
  for (const name of ["herald.js", "herald-worker.js"])
    await copyFile(join(installed, "dist", name), join(folder, name));
  const [html = ""] = codeBlocks(page, "2. Configure", "html");
  const [own = ""] = codeBlocks(page, "1. Install", "js");
  const project = await system.project("Site", ["webpush"]);
  const filled = html.replace("https://push.example.com", system.gateway).replace("prj_…", project.id);
  expect(filled).not.toBe(html);
  await writeFile(join(folder, "index.html"), filled);
  await writeFile(join(folder, "own-worker.js"), own);
  await writeFile(
    join(folder, "own.html"),
    filled.replace("createHerald({", 'createHerald({ worker: "/own-worker.js",'),
  );
  await browser.setNotifications("granted", site);

  const { devices } = new Herald({ url: system.gateway, token: project.token });
  for (const [count, path] of [
    [1, "/"],
    [1, "/own.html"],
  ] as const) {
    const tab = await browser.visit(site + path);
    if (path === "/") await tab.click("#subscribe");
    await tab.waitForSelector("#subscribe", { state: "hidden" });
    await eventually(async () => expect((await devices.list().page()).data).toHaveLength(count));
    const worker = await tab.evaluate("navigator.serviceWorker.ready.then(({ active }) => active.scriptURL)");
    expect(worker).toContain(path === "/" ? "herald-worker.js" : site);
  }
  const tab = await browser.visit("about:blank");
  await tab.addInitScript("delete globalThis.PushManager");
  await tab.goto(`${site}/`);
  await eventually(async () => expect(await tab.textContent("#hint")).toContain("home screen"));
  expect(await tab.isVisible("#subscribe")).toBe(false);
  expect(browser.errors).toEqual([]);
});
