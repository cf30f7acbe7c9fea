import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "@herald/provision";
import { eventually } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { apnsToken, type Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { codeBlocks, shellBlocks } from "./harness/shell-blocks.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const run = promisify(execFile);
let page: string;
let system: System;
let project: Project;
let secret: string;
const backends: ChildProcess[] = [];

/** Runs the commands under a heading of the page. Returns each printed line as JSON. */
const follow = async (heading: string, variables: Record<string, string> = {}) => {
  // The first section defines what the others use.
  const [definitions = ""] = shellBlocks(page, "Create an identity secret")[0]?.split("\n\n") ?? [];
  const names = { gateway: system.gateway, token: project.token, admin: system.adminToken, project: project.id };
  const blocks = shellBlocks(page, heading);
  const script = [definitions, ...blocks].join("\necho\n");
  const { stdout } = await run("sh", ["-e", "-c", script], { env: { ...process.env, ...names, ...variables } });
  return stdout
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line));
};

test.beforeAll(async ({ system: shared }) => {
  page = await readFile(join(import.meta.dirname, "../docs/how-to/sign-users-in.md"), "utf8");
  system = shared;
  project = await system.project("Users");
  const [created] = await follow("Create an identity secret");
  secret = created.secret;
  expect(secret).toMatch(/^his_/);
});
afterAll(async () => {
  for (const backend of backends) {
    const ended = once(backend, "exit");
    backend.kill();
    await ended;
  }
});
logOnFailure(() => system);

test.each([
  ["A backend in TypeScript", "ts", "backend.ts", process.execPath],
  ["A backend in Python", "python", "backend.py", "python3"],
])("%s signs tokens that log its users in, and no others", async (heading, tag, file, program) => {
  const port = String(await freePort());
  await writeFile(join(system.folder, file), codeBlocks(page, heading, tag).join(""));
  const backend = spawn(program, [join(system.folder, file)], {
    env: { ...process.env, PORT: port, HERALD_IDENTITY_SECRET: secret, HERALD_PROJECT: project.id },
    stdio: ["ignore", "ignore", "inherit"],
  });
  backends.push(backend);
  const ask = (cookie: string) => fetch(`http://127.0.0.1:${port}/`, { headers: { cookie } });
  await eventually(async () => expect((await ask("unknown")).status).toBe(401));
  const { user_token } = (await (await ask("session-of-ann")).json()) as { user_token: string };

  const pushToken = apnsToken();
  const [registered] = await follow("In the app", { push_token: pushToken, user_token });
  const [sent, users, user] = await follow("Send to a user");
  expect(users.data.map(({ user_id }: { user_id: string }) => user_id)).toContain("u_8412");
  expect(user.data.devices.map(({ id }: { id: string }) => id)).toContain(registered.data.id);
  await project.final(sent.data.id);
  expect(await system.simulators.pushes({ token: pushToken })).toHaveLength(1);
  // The page lists right after it sends, and a list contains a notification once it is stored: the next time it has the first.
  const [next, , , sends] = await follow("Send to a user");
  expect(sends.data.map(({ id }: { id: string }) => id)).toContain(sent.data.id);
  await project.final(next.data.id);
});

test("a user is erased as the page says", async () => {
  const [erased] = await follow("Erase a user");
  expect(erased.data).toMatchObject({ user_id: "u_8412", databases: "within an hour" });
});
