import { expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { logOnFailure } from "../harness/system.ts";
import { expectCalm, goTo } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** The page of a user: what the user got, however it was addressed, and what the user switched off. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

test("a user's page has sends by recipients and topics, those that name the user, and the preferences", async () => {
  const { system } = herald;
  const project = await system.project("One user");
  for (const kind of ["offers", "alerts"]) {
    const body = { kind: { title: `All ${kind}`, critical: kind === "alerts" } };
    expectStatus(await system.admin(`PUT /projects/${project.id}/kinds/${kind}`, { body }), 201);
  }
  const { device } = await project.register({ user_id: "u_1", topics: ["news"] });
  await project.register({ user_id: "u_2", topics: ["news"] });
  const choice = { preferences: { kinds: { offers: false }, quiet_hours: { from: "03:00", to: "03:01" } } };
  expectStatus(await project.call("PUT /users/u_1/preferences", { body: choice }), 200);

  const recipients = ["u_1", "u_2"].map((user) => ({ target: `user:${user}`, variables: { n: user } }));
  const list = await project.send({ title: "By a list for {{ n }}", variables: { n: "-" }, recipients });
  const topic = await project.send({ title: "To a topic", targets: ["topic:news"] });
  const muted = await project.send({ title: "Switched off", targets: ["user:u_1"], kind: "offers" });
  for (const { id } of [list, topic, muted]) await project.final(id);
  await project.send({
    title: "Much later",
    targets: ["user:u_1"],
    send_at: new Date(Date.now() + 86_400_000).toISOString(),
  });
  const other = await project.send({ title: "For the other", targets: ["user:u_2"] });
  await project.final(other.id);

  const page = await herald.browser.signedIn(`/p/${project.id}/users/u_1`);
  const sent = page.getByRole("region", { name: "Sent to this user" });
  await sent.getByRole("link", { name: "Much later" }).waitFor();
  expect(await sent.getByRole("row").allInnerTexts()).toEqual([
    expect.stringMatching(/^Message/),
    expect.stringMatching(/^Much later\s+SCHEDULED/i),
    expect.stringMatching(/^Switched off\s+SKIPPED\s+muted/i),
    expect.stringMatching(/^To a topic\s+ACCEPTED/i),
    expect.stringMatching(/^By a list for .+\s+ACCEPTED/i),
  ]);
  const preferences = page.getByRole("region", { name: "Preferences" });
  await expect
    .poll(() => preferences.getByRole("row").allInnerTexts())
    .toEqual([
      expect.stringMatching(/^Kind/),
      expect.stringMatching(/^All alerts alerts\s+ON\s+critical: always on/i),
      expect.stringMatching(/^All offers offers\s+OFF\s+the user/i),
    ]);
  await page.getByText("Quiet hours: 03:00–03:01, in the time zone of each device.").waitFor();
  await sent
    .getByRole("row", { name: /^By a list/ })
    .getByRole("link", { name: "Why?" })
    .click();
  await page.waitForURL(`**/notifications/${list.id}/devices/${device.id}`);
  await page.getByText("One of its recipients has the device.").waitFor();

  // What was sent to the device before it changed hands belongs to its user of then.
  expectStatus(await project.call(`PUT /users/u_2/devices/${device.id}`), 200);
  await goTo(page, `${system.gateway}/console/p/${project.id}/users/u_2`);
  await sent.getByRole("link", { name: "For the other" }).waitFor();
  expect(await sent.getByText("Switched off").count()).toBe(0);
  expectCalm(page);
});
