import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findBinary, findGo } from "@herald/provision";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { apnsToken, type Project } from "../harness/project.ts";
import { codeBlocks, shellBlocks } from "../harness/shell-blocks.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { type Ran, run } from "./tools.ts";

const page = await readFile(join(import.meta.dirname, "../../docs/how-to/clients-in-other-languages.md"), "utf8");
const orReason = (found: Promise<string>) => found.catch((error: Error) => ({ why: error.message }));
const go = await orReason(findGo(process.env));
const python = (await findBinary("python3", process.env.PATH)) ?? { why: "python3 is not on PATH" };
for (const [language, found] of Object.entries({ Go: go, Python: python }))
  if (typeof found !== "string") process.stderr.write(`SKIPPED: the client for ${language}, because ${found.why}\n`);

let system: System;
let project: Project;
let folder: string;

/** Runs a block of the page. */
const shell = (script: string, token = ""): Promise<Ran> =>
  run("sh", ["-e", "-c", script], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: `${process.env.PATH}:${typeof go === "string" ? dirname(go) : ""}`,
      HERALD_URL: system.gateway,
      HERALD_TOKEN: project.token,
      PUSH_TOKEN: token,
    },
  });

/** Changes each value of the document. */
const changeDocument = async (change: (value: unknown) => unknown): Promise<void> => {
  const file = join(folder, "openapi.json");
  const document = JSON.parse(await readFile(file, "utf8"), (_, value) => change(value));
  await writeFile(file, JSON.stringify(document));
};

/** As an earlier version has it, so that Herald answers what it did not know. */
const forgetCompleted = (value: unknown): unknown =>
  Array.isArray(value) ? value.filter((one) => one !== "completed") : value;

type Schema = { readonly "x-extensible-enum"?: readonly string[] };

/** As long as enums in answers were closed. */
const closeEnums = (value: unknown): unknown => {
  const known = (value as Schema | null)?.["x-extensible-enum"];
  return known === undefined ? value : { ...(value as Schema), enum: known };
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-generated-"));
  system = await startSystem();
  project = await system.project("Generated", ["fcm"]);
  for (let devices = 0; devices < 4; devices++)
    await project.register({ platform: "android", token: `android:${apnsToken()}` });
  expect(await shell(shellBlocks(page, "The OpenAPI document").join("\n"))).toMatchObject({ exitCode: 0 });
  const released = await readFile(join(inject("heraldRelease"), `herald-${manifest.version}.openapi.json`), "utf8");
  expect(JSON.parse(await readFile(join(folder, "openapi.json"), "utf8"))).toEqual(JSON.parse(released));
  await changeDocument(forgetCompleted);
});
afterAll(async () => {
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});
logOnFailure(() => system);

/** What each program prints, with this many devices in its project. */
const printed = (devices: number) => [
  "completed 1 of 1",
  "android accepted",
  `${devices} devices`,
  expect.stringMatching(/^422 \['?notification.targets: .* is required/),
];

describe.runIf(typeof go === "string")("Go", () => {
  test("a client is generated, compiled and used", async () => {
    const generated = await shell(shellBlocks(page, "Go").join("\n"));
    expect(generated, generated.stderr).toMatchObject({ exitCode: 0 });
    await writeFile(join(folder, "main.go"), codeBlocks(page, "Go", "go").join("\n"));
    const { stdout, stderr } = await shell("go run .", `android:${apnsToken()}`);
    expect(stdout.trim().split("\n"), stderr).toEqual(printed(5));
  });
});

describe.runIf(typeof python === "string")("Python", () => {
  const [install = "", generate = ""] = shellBlocks(page, "Python");
  const follow = async (program: string) => {
    const generated = await shell(generate);
    expect(generated, generated.stdout + generated.stderr).toMatchObject({ exitCode: 0 });
    await writeFile(join(folder, "main.py"), program);
    return shell(".venv/bin/python main.py", `android:${apnsToken()}`);
  };
  const program = codeBlocks(page, "Python", "python").join("\n");

  beforeAll(async () => {
    expect(await shell(install)).toMatchObject({ exitCode: 0 });
  });

  test("a client is generated and used", async () => {
    const { stdout, stderr } = await follow(program);
    expect(stdout.trim().split("\n"), stderr).toEqual(printed((await project.devices()).length));
  });

  test("with closed enums it would refuse a new value", async () => {
    await changeDocument(closeEnums);
    const { exitCode, stderr } = await follow(program.replace("order-43", "order-44"));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("ValueError: 'completed' is not a valid NotificationStatus");
  });
});
