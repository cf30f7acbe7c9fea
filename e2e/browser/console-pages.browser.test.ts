import { expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { newAddress } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure } from "../harness/system.ts";
import { type ConsolePage, expectCalm, goTo } from "./console-page.ts";
import { problemsInBothSchemes, tooSmall, wider } from "./page-checks.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** Checks of every page of the console. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

/** The addresses of all pages of a project, with content on each. */
const pagesOf = (found: { notification: string; device: string; user: string; webhook: string }): string[] => [
  "",
  "/compose",
  "/notifications",
  `/notifications/${found.notification}`,
  `/notifications/${found.notification}/devices/${found.device}`,
  "/trace",
  "/devices",
  `/devices/${found.device}`,
  "/templates",
  "/templates/order-shipped",
  "/topics",
  "/users",
  `/users/${encodeURIComponent(found.user)}`,
  "/settings",
  "/settings/providers",
  "/settings/tokens",
  "/settings/webhooks",
  `/settings/webhooks/${found.webhook}`,
  "/settings/kinds",
  "/settings/identity",
  "/settings/limits",
  "/operations",
  "/operations/letters",
  "/operations/operators",
  "/operations/audit",
];

const addressOf = (project: Project, path: string) => `${herald.system.gateway}/console/p/${project.id}${path}`;

const addWebhook = async (project: Project, description: string): Promise<string> => {
  const webhook = { url: "http://127.0.0.1:1/herald", description };
  return expectStatus(await project.call("POST /webhooks", { body: { webhook } }), 201).body.data.id;
};

/** Whether the selected tab is cut. */
const isTabCut = (page: ConsolePage) =>
  page.evaluate(`[...document.querySelectorAll('.tabs [aria-selected="true"]')].some((one) => {
    const { left, right } = one.getBoundingClientRect();
    return left < -1 || right > document.documentElement.clientWidth + 1;
  })`);

const markup = `<img/src=x/onerror="alert(1)"><script>alert(2)</script>javascript:alert(3)`;
const rightToLeft = "\u200fمرحبا بكم في المتجر الجديد، العرض ينتهي اليوم";
const foreign = [
  { kind: "HTML and scripts in one long word", words: markup.padEnd(256, "n"), isRightToLeft: false },
  { kind: "right-to-left text and emoji", words: rightToLeft + "🎉".repeat(105), isRightToLeft: true },
];

test.for(foreign)(
  "foreign text is shown as text, at 1280 and 360 px, and axe finds nothing serious in it: $kind",
  {
    timeout: 240_000,
  },
  async ({ words, isRightToLeft }) => {
    const project = await herald.system.project(words.slice(0, 100), ["apns", "webpush"]);
    // Ids of users are ASCII.
    const user = words.replaceAll(/[^!-.0-~]/g, "-").slice(0, 128);
    const { device } = await project.register({ topics: ["news"], metadata: { note: words }, user_id: user });
    const { id } = await project.send({
      title: words,
      body: words,
      targets: [device.id],
      link_to: "/javascript:alert(4)",
      image: "https://example.com/javascript:alert(5).png",
      labels: { campaign: words.slice(0, 40) },
    });
    await project.final(id);
    const webhook = await addWebhook(project, words.slice(0, 200));
    const kind = { kind: { title: words.slice(0, 60), frequency_cap: { count: 2, per: "week" } } };
    expectStatus(await herald.system.admin(`PUT /projects/${project.id}/kinds/offers`, { body: kind }), 201);
    await herald.system.operator({ name: words.slice(0, 60), role: "viewer" });
    const page = await herald.browser.signedIn(`/p/${project.id}`);
    const fits = async (path: string) => {
      for (const width of [360, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        await expect.poll(() => wider(page), { message: `${path} at ${width} px` }).toEqual([]);
      }
    };
    const direction = (selector: string) =>
      page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).direction`);
    const directed: Readonly<Record<string, string>> = {
      "": ".running a",
      "/notifications": ".row-link b",
      [`/notifications/${id}`]: ".lock-title",
      [`/devices/${device.id}`]: ".row-link b",
    };
    const found: Record<string, string[]> = {};
    for (const path of pagesOf({ notification: id, device: device.id, user, webhook })) {
      await goTo(page, addressOf(project, path));
      await fits(path);
      await page.setViewportSize({ width: 360, height: 900 });
      await goTo(page, addressOf(project, path));
      const small = (await tooSmall(page)) as string[];
      await expect.poll(() => isTabCut(page), { message: `the tab of ${path}` }).toBe(false);
      await page.setViewportSize({ width: 1280, height: 900 });
      expect(await page.locator('#root img:not([src="/console/icon.svg"])').count()).toBe(0);
      expect(await page.locator('a[href^="javascript:"]').count()).toBe(0);
      expectCalm(page);
      const selector = directed[path];
      if (isRightToLeft && selector !== undefined) {
        await page.locator(selector).first().waitFor();
        // It begins at the right, and the page around it does not change.
        expect([path, await direction(selector), await direction("main")]).toEqual([path, "rtl", "ltr"]);
      }
      // Words do not change what axe checks, so one of the two is enough.
      const problems = isRightToLeft ? [] : await problemsInBothSchemes(page);
      if (problems.length + small.length > 0) found[path] = [...problems, ...small];
    }
    expect(found).toEqual({});
    await goTo(page, addressOf(project, "/compose"));
    for (const field of ["main input", "main textarea"])
      expect(await page.evaluate(`getComputedStyle(document.querySelector("${field}")).unicodeBidi`)).toBe("plaintext");
    await page.getByLabel("Title").fill(words);
    await page.getByLabel("Text").fill(words);
    await page.getByLabel("Link").fill("javascript:alert(6)");
    await page.getByLabel("Targets").first().fill(words);
    await page.keyboard.press("Enter");
    await page.getByRole("alert").first().waitFor();
    await fits("what was composed");
    expectCalm(page);
  },
);

test("hundreds of topics come a page at a time", async () => {
  const project = await herald.system.project("Topics");
  // More than a page of the API, of which the console reads one at a time.
  const names = Array.from({ length: 210 }, (_, index) => `topic-${String(index).padStart(3, "0")}`);
  await inParallel(names, 16, async (name) => {
    expectStatus(await project.call("POST /topics", { body: { topic: { name } } }), 201);
  });
  const page = await herald.browser.signedIn(`/p/${project.id}/topics`);
  await page.getByText("1–25 of 210").waitFor();
  expect(await page.locator("tbody tr").count()).toBe(25);
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("26–50 of 210").waitFor();
  expect(await page.locator("tbody tr").count()).toBe(25);
  await goTo(page, addressOf(project, "/topics?page=9"));
  await page.getByText("201–210 of 210").waitFor();
  expect(await page.getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
  await page.getByRole("textbox", { name: "Begins with" }).fill("topic-19");
  await page.keyboard.press("Enter");
  await page.getByRole("cell", { name: "topic-190", exact: true }).waitFor();
  await expect.poll(() => page.locator("tbody tr").count()).toBe(10);

  await goTo(page, addressOf(project, "/compose"));
  await page.getByLabel("Targets").first().fill("topic-209");
  await page.getByRole("option", { name: "topic:topic-209" }).click();
  await page.getByLabel("Targets").first().fill("topic:topic-098");
  await page.getByRole("option", { name: "topic:topic-098" }).click();
  await page.getByText("No active device matches").waitFor();
  expectCalm(page);
});

test("users are found by the beginning of their ids, also when composing", async () => {
  const project = await herald.system.project("Users");
  const ids = Array.from({ length: 120 }, (_, index) => `u_${String(index).padStart(3, "0")}`);
  await inParallel(ids, 16, (userId) => project.register({ user_id: userId }));
  const page = await herald.browser.signedIn(`/p/${project.id}/users`);
  await page.getByRole("link", { name: "u_000" }).waitFor();
  await page.getByRole("textbox", { name: "Id begins with" }).fill("u_11");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "u_119" }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(10);

  await goTo(page, addressOf(project, "/compose"));
  await page.getByLabel("Targets").first().fill("user:");
  await page.getByRole("option", { name: "user:u_000" }).waitFor();
  await page.getByLabel("Targets").first().fill("user:u_117");
  await page.getByRole("option", { name: "user:u_117" }).click();
  await page.locator(".audience-total", { hasText: "1 device" }).waitFor();
  expectCalm(page);
});

test("presentation is shown per platform while it is typed, and an invalid field has its problem", async () => {
  const project = await herald.system.project("Concerts", ["apns", "fcm", "webpush"]);
  for (const platform of ["ios", "android", "web"] as const)
    await project.register({ platform, ...(await newAddress(herald.system.simulators, platform)) });
  const page = await herald.browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title").fill("Doors open at 7");
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page.locator("summary", { hasText: "Presentation" }).click();
  await page.getByLabel("Urgency").first().click();
  await page.getByRole("option", { name: "Time-sensitive" }).click();
  await page.getByLabel("Thread").fill("concerts");
  await page.getByLabel("Android channel").fill("doors");
  await page.getByLabel("Icon").fill("https://example.com/icon.png");
  const notes = () => page.locator(".lock-note").allTextContents();
  await expect.poll(notes).toEqual(["Time Sensitive", "Thread concerts"]);
  await page.getByText("Android", { exact: true }).last().click();
  await expect.poll(notes).toEqual(["Channel doors", "Thread concerts"]);
  await page.getByText("Web", { exact: true }).last().click();
  await expect.poll(notes).toEqual(["Icon https://example.com/icon.png"]);
  for (const relevance of ["2", "much"]) {
    await page.getByLabel("Relevance").fill(relevance);
    await page.locator(".mantine-Input-error, .mantine-InputWrapper-error").first().waitFor();
  }
  await page.getByLabel("Relevance").fill("0,5");
  await page.getByRole("button", { name: "Send to 3 devices…" }).click();
  await page.getByRole("button", { name: "Send to 3 devices", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Doors open at 7" }).waitFor();
  const id = page.url().split("/").at(-1) ?? "";
  await project.final(id);
  const [push] = await herald.system.simulators
    .pushes({ provider: "apns", status: 200 })
    .then((pushes) => pushes.filter((one) => payloadOf(one).notification_id === id));
  expect(push?.payload).toMatchObject({
    aps: { "interruption-level": "time-sensitive", "relevance-score": 0.5, "thread-id": "concerts" },
  });
});

test("a project among more than a hundred is found by its name", async () => {
  const names = Array.from({ length: 100 }, (_, index) => `Shop ${index}`);
  await inParallel(names, 8, async (name) => {
    expectStatus(await herald.system.admin("POST /projects", { body: { project: { name } } }), 201);
  });
  const project = await herald.system.project("The last of all");
  const page = await herald.browser.signedIn();
  await page.getByRole("button", { name: /^Project/ }).click();
  await page.getByText("There are more").waitFor();
  expect(await page.getByRole("dialog").getByRole("link").count()).toBe(50);
  await page.getByLabel("Find a project").fill("last OF");
  await page.getByRole("link", { name: "The last of all" }).click();
  await page.waitForURL(`**/p/${project.id}`);
  await page.getByRole("button", { name: "Project: The last of all" }).waitFor();
  await page.goto(`${herald.system.gateway}/console/`);
  await page.waitForURL(`**/p/${project.id}`);
  expectCalm(page);
});

test("axe finds nothing serious in the project dialogs, light and dark", async () => {
  const project = await herald.system.project("Axe");
  const page = await herald.browser.signedIn(`/p/${project.id}`);
  await page.getByRole("button", { name: /^Project/ }).click();
  const dialog = page.getByRole("dialog", { name: "Projects" });
  await dialog.getByRole("link").first().waitFor();
  const projects = await problemsInBothSchemes(page);
  await dialog.getByRole("button", { name: "New project" }).click();
  await page.getByRole("dialog", { name: "New project" }).getByLabel("Name").waitFor();
  expect({ projects, newProject: await problemsInBothSchemes(page) }).toEqual({ projects: [], newProject: [] });
  expectCalm(page);
});

test("the sign-in and the first page after it are at most 250 KB together", async () => {
  const page = await herald.browser.open();
  let bytes = 0;
  const files = new Set<string>();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  devtools.on("Network.requestWillBeSent", ({ requestId, request: { url } }) => {
    if (new URL(url).pathname.startsWith("/console")) files.add(requestId);
  });
  // Compressed bytes, as transferred.
  devtools.on("Network.dataReceived", ({ requestId, encodedDataLength }) => {
    if (files.has(requestId)) bytes += encodedDataLength;
  });
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  await page.reload({ waitUntil: "networkidle" });
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  const signIn = bytes;
  await page.getByLabel("Operator token").fill(herald.system.adminToken);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.locator(".u-legend").waitFor();
  const both = bytes;
  process.stdout.write(`first load: sign-in ${signIn} bytes, with the overview ${both} bytes\n`);
  expect(signIn).toBeGreaterThan(50_000);
  expect(both).toBeGreaterThan(signIn);
  expect(both).toBeLessThanOrEqual(250 * 1_024);
});
