import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { pipInstall } from "../test-tools.ts";
import { show } from "./figures.ts";
import { hostileVariables } from "./scale.ts";

/** Examples per operation and phase. The design of the API requires a thousand. */
const examples = process.env[hostileVariables.examples] ?? "5";

let system: System;
let packages: string;
beforeAll(async () => {
  packages = await pipInstall("schemathesis-4.32.5", ["schemathesis==4.32.5"], {
    env: process.env,
    progress: (line) => process.stderr.write(`${line}\n`),
  });
  // All requests come from one address, and rate limits would hide the tested answers.
  system = await startSystem({
    env: { HERALD_GATEWAY_LIMIT_FAILURES: "1000000", HERALD_GATEWAY_LIMIT_CLIENTS: "1000000" },
  });
}, 900_000);
afterAll(() => system?.stop());
logOnFailure(() => system);

test.concurrent.for([
  ["what apps and backends call", "^/api/v1/", async () => (await system.project()).token],
  ["what operators call", "^/admin/v1/", async () => system.adminToken],
] as const)("schemathesis finds nothing in %s", async ([, paths, token], { task }) => {
  const reports = join(system.folder, "schemathesis", paths.replaceAll(/\W/g, ""));
  const python = spawn(
    "python3",
    [
      ...[
        "-m",
        "schemathesis.cli",
        "--config-file",
        join(import.meta.dirname, "schemathesis.toml"),
        "run",
        `${system.gateway}/openapi.json`,
      ],
      // This answer never ends, so generated requests would wait for it.
      ...["--exclude-path", "/api/v1/events"],
      ...["--include-path-regex", paths, "--header", `Authorization: Bearer ${await token()}`],
      ...["--max-examples", examples, "--continue-on-failure"],
      // A short run makes up the same requests each time.
      ...(process.env[hostileVariables.full] ? [] : ["--seed", "20260101"]),
      ...["--report", "json", "--report-json-path", join(reports, "report.json")],
    ],
    {
      env: {
        ...process.env,
        PYTHONPATH: packages,
        PYTHONDONTWRITEBYTECODE: "1",
        SCHEMATHESIS_HOOKS: join(import.meta.dirname, "schemathesis_hooks.py"),
      },
      cwd: system.folder,
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let printed = "";
  for (const stream of [python.stdout, python.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
  const [code] = await once(python, "close");
  const report = JSON.parse(await readFile(join(reports, "report.json"), "utf8"));
  show(task, {
    operations: report.operations.tested,
    "requests made up": report.test_cases.generated,
    failures: report.failures.length,
  });
  // Each failure in short: the bodies of requests can be a thousand devices.
  const lines = printed.split("\n").map((line) => line.slice(0, 300));
  const found = lines.findIndex((line) => /^=+ (ERRORS|FAILURES) =+$/.test(line));
  expect(code, lines.slice(found < 0 ? -100 : found).join("\n")).toBe(0);
});
