import { join } from "node:path";
import type { Push } from "@herald/simulators";
import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { type CommandLine, commandLine } from "./harness/command-line.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let environment: Record<string, string>;
let cli: CommandLine;
test.beforeAll(({ system: shared }) => {
  system = shared;
  environment = {
    HOME: join(system.folder, "home-of-exports"),
    HERALD_URL: system.gateway,
    HERALD_ADMIN_TOKEN: system.adminToken,
  };
  cli = commandLine(environment);
});
logOnFailure(() => system);

test("an export goes into a file, a pipe that closes and an import", async () => {
  const [mine, other] = [await system.project("From"), await system.project("To")];
  for (const _ of [1, 2, 3]) await mine.register({ user_id: "u-1" });
  const { token } = await cli.json(
    ...["token", "create", "--project", mine.id, "--name", "export", "--scope", "export", "--scope", "read"],
  );
  const from = commandLine({ ...environment, HERALD_TOKEN: token });
  const file = join(system.folder, "moved.ndjson");
  const shown = await from.terminal(`herald device export ${file} --keys`).ended();
  expect(shown).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Wrote 3 rows") });
  const to = commandLine({ ...environment, HERALD_TOKEN: other.token });
  expect(await to.json("device", "import", file, "--format", "herald")).toMatchObject({ created: 3, refused: 0 });
  const head = await from.shell("set -o pipefail; herald device export --format csv | head -n 1").ended();
  expect(head).toMatchObject({ exitCode: 0, stderr: "", stdout: expect.stringMatching(/^id,token,platform/) });
});

test("notifications, deliveries and opens are exported, into files and programs", async () => {
  const mine = await system.project("Exported");
  const { device } = await mine.register();
  const { id } = await mine.send({ title: "Hello", targets: ["all"] });
  await mine.final(id);
  const push = await eventually(async () => {
    const found = (await system.simulators.pushes()).find((one) => payloadOf(one).notification_id === id);
    expect(found).toBeDefined();
    return found as Push;
  });
  const open = { body: { project_id: mine.id, token: payloadOf(push).token }, token: undefined };
  expectStatus(await mine.call(`PUT /notifications/${id}/open`, open), 204);
  const { token } = await cli.json(
    ...["token", "create", "--project", mine.id, "--name", "export", "--scope", "export", "--scope", "read"],
  );
  const from = commandLine({ ...environment, HERALD_TOKEN: token });
  const rows = async (...words: string[]) => {
    const { exitCode, stdout, stderr } = await from.herald(...words);
    expect([exitCode, stderr]).toEqual([0, ""]);
    return stdout
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  };
  expect(await rows("notification", "export")).toMatchObject([{ id, title: "Hello" }]);
  expect(await rows("notification", "export", "--status", "scheduled")).toEqual([]);
  const delivered = { notification_id: id, device_id: device.id };
  expect(await rows("delivery", "export", "--notification", id)).toMatchObject([{ ...delivered, status: "accepted" }]);
  expect(await rows("delivery", "export", "--status", "failed")).toEqual([]);
  await eventually(async () => expect(await rows("open", "export", "--notification", id)).toMatchObject([delivered]));
  const file = join(system.folder, "opens.csv");
  const shown = await from.terminal(`herald open export --format csv ${file}`).ended();
  expect(shown).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Wrote 1 row to") });
  expect(await from.json("open", "export", file)).toMatchObject({ file, rows: 1, last: expect.any(String) });

  const refused = await commandLine({ ...environment, HERALD_TOKEN: mine.token }).herald("open", "export");
  expect([refused.exitCode, refused.stderr]).toEqual([3, expect.stringContaining("--scope")]);
});
