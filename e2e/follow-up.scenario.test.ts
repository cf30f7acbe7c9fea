import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "@herald/provision";
import { eventually, request } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { test } from "./harness/shared-system.ts";
import { codeBlocks, shellBlocks } from "./harness/shell-blocks.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
let system: System;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

/** The mails that the provider was asked to send. */
const mails: { readonly key: unknown; readonly user: string; readonly subject: string }[] = [];
const provider = createServer(async (asked, response) => {
  const body = Buffer.concat(await asked.toArray()).toString();
  mails.push({ key: asked.headers["idempotency-key"], ...JSON.parse(body) });
  response.writeHead(202).end();
});
let receiver: ChildProcess | undefined;
afterAll(async () => {
  receiver?.kill();
  provider.closeAllConnections();
  provider.close();
});

test("the page on follow-ups works as written: who did not open the notification gets a mail", {
  timeout: 240_000,
}, async () => {
  const page = await readFile(join(root, "docs/how-to/follow-up.md"), "utf8");
  const project = await system.project("Follow-up");
  await project.register({ user_id: "u-17" });
  const { device } = await project.register({ user_id: "u-18" });
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}/`;
  const env = { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}`, NO_COLOR: "1" };
  const variables = { ...env, HERALD_URL: system.gateway, HERALD_TOKEN: project.token, token: project.token, url };
  const shell = async (heading: string) =>
    (await run("sh", ["-e", "-c", shellBlocks(page, heading).join("\n")], { env: variables })).stdout;

  const secret = /whsec_\S+/.exec(await shell("Create a webhook"))?.[0] ?? "";
  const file = join(system.folder, "mail.ts");
  await writeFile(file, codeBlocks(page, "Send the mail", "ts").join(""));
  await symlink(join(root, "node_modules"), join(system.folder, "node_modules")).catch(() => undefined);
  await once(provider.listen(0, "127.0.0.1"), "listening");
  const mailUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  receiver = spawn(process.execPath, ["--conditions=@herald/source", file], {
    env: { ...variables, PORT: port, WEBHOOK_SECRET: secret, MAIL_URL: mailUrl },
    stdio: ["ignore", "inherit", "inherit"],
  });
  await eventually(async () => expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401), {
    timeoutMs: 20_000,
  });

  const sent = await shell("Send");
  const id = /ntf_\w{26}/.exec(sent)?.[0] ?? sent;
  await project.final(id);
  const push = (await system.simulators.pushes({ token: device.token })).find(
    (one) => payloadOf(one).notification_id === id,
  );
  const body = { project_id: project.id, token: payloadOf(push as never).token };
  expect((await request(`${system.gateway}/api/v1`, `PUT /notifications/${id}/open`, { body })).status).toBe(204);
  await eventually(() => expect(mails).toHaveLength(1), { timeoutMs: 150_000 });
  expect(mails).toEqual([{ key: expect.stringContaining(id), user: "u-17", subject: "Your flight is cancelled" }]);
});
