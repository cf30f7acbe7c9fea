import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken } from "../harness/project.ts";
import { logOnFailure } from "../harness/system.ts";
import { expectCalm } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** What the console's overview asks a person to look at. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

test("the overview names a provider that is paused, and one that cannot be reached", async () => {
  const project = await herald.system.project("Attention", ["apns", "fcm"]);
  // Valid settings with another key than the one that the provider knows for this team.
  await herald.system.putProvider(project, "apns", { key_id: "HERALDDEMO", team_id: "LOCALSTACK" });
  await herald.system.putProvider(project, "fcm", { endpoint: "https://127.0.0.1:1" });
  await project.register();
  await project.register({ platform: "android", token: "a-token-that-no-server-takes" });
  await project.send({ title: "Stuck", targets: ["all"] });
  const page = await herald.browser.signedIn(`/p/${project.id}`);
  await page.getByRole("link", { name: "apns is paused" }).waitFor();
  await page.getByRole("link", { name: "fcm is unreachable" }).waitFor();
  expectCalm(page);
});

test("the overview names a notification that more than a fifth of its devices did not get, and no other", async () => {
  const project = await herald.system.project("Spikes");
  const gone = "dead0";
  const register = (group: string, here: number, without: number) =>
    inParallel(Array.from({ length: here + without }), 16, (_, index) =>
      project.register({ token: apnsToken(index < here ? "a11ce" : gone), metadata: { group } }),
    );
  await register("few", 20, 10);
  await register("many", 44, 16);
  await register("rare", 46, 4);
  await herald.system.simulators.script([{ provider: "apns", tokenPrefix: gone, status: 410 }]);
  const page = await herald.browser.signedIn(`/p/${project.id}`);
  await page.getByText("Nothing needs attention").waitFor();
  const send = async (title: string, target: string) =>
    (await project.final((await project.send({ title, targets: [target] })).id)).counts;
  expect(await send("A third of too few", "metadata:group=few")).toMatchObject({ devices: 30, failed: 10 });
  expect(await send("A quarter", "metadata:group=many")).toMatchObject({ devices: 60, failed: 16 });
  expect(await send("A few", "metadata:group=rare")).toMatchObject({ devices: 50, failed: 4 });
  await herald.system.simulators.script([]);
  const spike = page.getByRole("link", { name: "“A quarter” did not reach 27 % of its devices" });
  await spike.waitFor();
  await page.getByRole("listitem").filter({ has: spike }).getByText("unregistered").waitFor();
  await page.getByRole("link", { name: "A few", exact: true }).waitFor();
  expect(await page.getByRole("link", { name: /did not reach/ }).count()).toBe(1);
  await spike.click();
  await page.getByRole("heading", { name: /A quarter/ }).waitFor();
  expectCalm(page);
});
