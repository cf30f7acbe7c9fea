import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "@herald/provision";
import { eventually } from "@herald/testing";
import { afterAll, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { codeBlocks, shellBlocks } from "./harness/shell-blocks.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const run = promisify(execFile);
let page: string;
let system: System;
let project: Project;
const receivers: ChildProcess[] = [];
test.beforeAll(async ({ system: shared }) => {
  page = await readFile(join(import.meta.dirname, "../docs/how-to/webhooks.md"), "utf8");
  system = shared;
  project = await system.project("Webhooks");
});
afterAll(async () => {
  for (const receiver of receivers) {
    const ended = once(receiver, "exit");
    receiver.kill();
    await ended;
  }
});
logOnFailure(() => system);

/** Runs the commands under a heading of the page. Returns each printed line as JSON. */
const follow = async (heading: string, variables: Record<string, string> = {}) => {
  // The first section defines what the others use.
  const [definitions = ""] = shellBlocks(page, "Create a webhook")[0]?.split("\n\n") ?? [];
  const env = { ...process.env, gateway: system.gateway, token: project.token, ...variables };
  const blocks = shellBlocks(page, heading);
  const { stdout } = await run("sh", ["-e", "-c", [definitions, ...blocks].join("\n")], { env });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
};

test.each([
  ["A receiver in Node", "js", "receiver.mjs", process.execPath],
  ["A receiver in Python", "python", "receiver.py", "python3"],
])("%s: what it prints is genuine, and what is not genuine it refuses", async (heading, tag, file, program) => {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}/`;
  const [{ data, secret }] = await follow("Create a webhook", { url });
  const named = { webhook: data.id };

  await writeFile(join(system.folder, file), codeBlocks(page, heading, tag).join(""));
  const receiver = spawn(program, [join(system.folder, file)], {
    env: { ...process.env, PORT: port, WEBHOOK_SECRET: secret },
    stdio: ["ignore", "pipe", "inherit"],
  });
  receivers.push(receiver);
  let printed = "";
  receiver.stdout.setEncoding("utf8").on("data", (text) => {
    printed += text;
  });
  await eventually(() => fetch(url, { method: "POST", body: "{}" }), { timeoutMs: 20_000 });

  const [ping] = await follow("Try it", { ...named, message: "unknown-yet" });
  const message = ping.data.id;
  await eventually(() => expect(printed).toContain("io.herald.webhook.ping.v1"), { timeoutMs: 20_000 });

  const { id } = await project.send({ title: "Hello", targets: ["all"] });
  await project.final(id);
  await eventually(() => expect(printed).toMatch(new RegExp(`notification\\.completed\\.v1 .*${id}`)), {
    timeoutMs: 20_000,
  });

  // A body that was changed in transit, a foreign signature, and an old message.
  const shown = await eventually(async () => {
    const { body } = await project.call(`GET /webhooks/${data.id}/messages/${message}`);
    expect(body.data).toMatchObject({ status: "delivered", attempts: [{ status: 204 }] });
    return body.data;
  });
  const forged = (headers: Record<string, string>) =>
    fetch(url, { method: "POST", headers, body: JSON.stringify(shown.payload) });
  const now = String(Math.floor(Date.now() / 1_000));
  const signature = `v1,${Buffer.alloc(32).toString("base64")}`;
  for (const timestamp of [now, "1700000000", "soon"]) {
    const headers = { "webhook-id": message, "webhook-timestamp": timestamp, "webhook-signature": signature };
    expect((await forged(headers)).status).toBe(401);
  }
  expect((await forged({})).status).toBe(401);

  // The rest of the page. The receiver has the old secret, which stays valid for a day.
  const [, sent] = await follow("Send again", { ...named, message, since: "2026-01-01T00:00:00Z" });
  expect(sent.data).toEqual([]);
  const [rotated] = await follow("Rotate the secret", named);
  expect(rotated.secret).toMatch(/^whsec_/);
  const next = await project.send({ title: "Hello again", targets: ["all"] });
  await eventually(() => expect(printed).toContain(next.id), { timeoutMs: 20_000 });
});

test("the page's way without a URL shows the same", async () => {
  const since = new Date(Date.now() - 1_000).toISOString();
  const { id } = await project.send({ title: "Hello", targets: ["all"] });
  await project.final(id);
  const [command = ""] = shellBlocks(page, "Follow events without a URL");
  const env = { ...process.env, gateway: system.gateway, token: project.token, since };
  await eventually(
    async () => {
      // curl exits with 28 at its timeout, because the stream itself never ends.
      const shell = `curl() { command curl --max-time 3 "$@" || [ $? = 28 ]; }\n${command}`;
      const { stdout } = await run("sh", ["-e", "-c", shell], { env });
      expect(stdout).toMatch(
        new RegExp(`^id: [\\w-]+\\ndata: \\{.*"type":"io.herald.notification.completed.v1".*${id}.*\\}$`, "m"),
      );
    },
    { timeoutMs: 20_000 },
  );
});
