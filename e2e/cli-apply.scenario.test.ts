import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { eventually } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import { apnsToken } from "./harness/project.ts";
import { serviceAccount, settingsFor } from "./harness/providers.ts";
import { quickCommandLine } from "./harness/quick-command-line.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { startWebhookReceiver } from "./harness/webhook-receiver.ts";

const bin = join(import.meta.dirname, "../node_modules/.bin");
let system: System;
let receiver: Awaited<ReturnType<typeof startWebhookReceiver>>;
let folder: string;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  receiver = await startWebhookReceiver(() => 204);
});
afterAll(async () => {
  await receiver?.stop();
});
logOnFailure(() => system);

let count = 0;
/** A folder with the secrets that a project file names, and a key that is free. */
const newFolder = async () => {
  folder = await mkdtemp(join(system.folder, "apply-"));
  const { simulators } = JSON.parse(await readFile(join(system.folder, ".herald/local.json"), "utf8"));
  const { private_key } = settingsFor("apns", simulators) as { private_key: string };
  await writeFile(join(folder, "AuthKey_E2EKEY0001.p8"), private_key);
  await writeFile(join(folder, "apns-ca.pem"), simulators.ca);
  await writeFile(join(folder, "fcm-ca.pem"), simulators.ca);
  await writeFile(join(folder, "service-account.json"), JSON.stringify(serviceAccount()));
  return { key: `shop-${++count}`, simulators };
};

const environment = (url = system.gateway) => ({
  HOME: join(system.folder, "home-of-apply"),
  HERALD_URL: url,
  HERALD_ADMIN_TOKEN: system.adminToken,
});
/** As its own process in the folder. */
const herald = (...words: string[]) =>
  commandLine(environment())
    .shell(`cd ${folder} && herald ${words.join(" ")}`)
    .ended();
/** In this process, which takes less than starting another one. */
const apply = async (...words: string[]) => {
  const file = join(folder, "shop.yaml");
  const { exitCode, stdout, stderr } = await quickCommandLine(environment()).herald("apply", "-f", file, ...words);
  return { exitCode, stdout, stderr: stderr.replaceAll(`${folder}/`, "") };
};
const done = async (...words: string[]): Promise<string> => {
  const { exitCode, stdout, stderr } = await apply(...words);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout;
};
/** The number of changes. */
const applied = async (...words: string[]): Promise<number> => {
  const { exitCode, stdout, stderr } = await apply("--prune", "--yes", "--json", ...words);
  expect(exitCode, stderr).toBe(0);
  return JSON.parse(stdout).changes.length;
};
const content = async (name: string) => (await readFile(join(folder, name), "utf8")).trim();
const isValid = async (token: string) =>
  (await fetch(`${system.gateway}/api/v1/devices`, { headers: { authorization: `Bearer ${token}` } })).ok;

type File = { readonly key: string; readonly apns: string; readonly hook: string };
const first = ({ key, apns, hook }: File) => `herald: 1
project: { key: ${key}, name: Shop, stale_after: 90d }
limits: { sends: 200000, exports: 0 }
providers:
  apns:
    team_id: E2ETEAM001
    key_id: E2EKEY0001
    bundle_id: com.example.shop
    bundle_ids: [com.example.driver]
    environment: sandbox
    private_key: { file: AuthKey_E2EKEY0001.p8 }
    endpoint: ${apns}
    ca: { file: apns-ca.pem }
  webpush: { subject: "mailto:push@example.com" }
tokens:
  - { name: backend, scopes: [send, read, devices], secret: { write: backend.token } }
  - { name: reports, scopes: [read], expires_at: 2999-01-01T00:00:00Z, secret: { write: reports.token } }
webhooks:
  - { url: "${hook}", events: [io.herald.notification.completed.v1], secret: { write: hook.secret } }
`;
/** Changes or leaves out something of every section. */
const second = ({ key, apns, hook }: File) => `herald: 1
project: { key: ${key}, name: Shop 2, stale_after: null }
limits: { sends: 300000 }
providers:
  apns:
    team_id: E2ETEAM001
    key_id: E2EKEY0001
    bundle_id: com.example.shop2
    environment: sandbox
    private_key: { file: AuthKey_E2EKEY0001.p8 }
    endpoint: ${apns}
    ca: { file: apns-ca.pem }
tokens:
  - { name: backend, scopes: [send, read, devices], secret: { write: backend.token } }
webhooks:
  - { url: "${hook}", description: Orders, secret: { write: hook.secret } }
`;

test("a file brings a project from nothing to a push, and every later run finds what differs", async () => {
  const { key, simulators } = await newFolder();
  const file = { key, apns: simulators.apns, hook: receiver.urlOf(`/${key}`) };
  await writeFile(join(folder, "shop.yaml"), first(file));
  expect(await done("--dry-run")).toMatch(
    /\+ project shop-\d+: Shop[\s\S]*8 changes to make\. Nothing was changed\.\n$/,
  );
  expect((await apply("--check")).exitCode).toBe(1);

  // Nothing is made before the folder of a secret can be written to.
  expect(await done()).toMatch(/\+ webhook http:[\s\S]*Made 8 changes\. The project is prj_\w+\.\n$/);
  for (const name of ["backend.token", "reports.token", "hook.secret"])
    expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
  const backend = await content("backend.token");
  const push = `HERALD_TOKEN=$(cat backend.token) herald send --title Hello --to all --watch`;
  const device = { device: { token: apnsToken(), platform: "ios", environment: "sandbox" } };
  const registered = await fetch(`${system.gateway}/api/v1/devices`, {
    method: "POST",
    headers: { authorization: `Bearer ${backend}`, "content-type": "application/json" },
    body: JSON.stringify(device),
  });
  expect(registered.status).toBe(201);
  const sent = await commandLine(environment()).shell(`cd ${folder} && ${push}`).ended();
  expect([sent.exitCode, sent.stdout]).toEqual([0, expect.stringMatching(/accepted +1/)]);
  receiver.expectSecret(`/${key}`, await content("hook.secret"));

  expect(await done("--check")).toMatch(/No difference\.\n$/);
  await rm(join(folder, "hook.secret"));
  expect(await done()).toMatch(/~ webhook .*: a new secret into hook\.secret; the old one is valid for a day\n/);
  expect(await done("--check")).toMatch(/No difference/);

  await writeFile(join(folder, "shop.yaml"), second(file));
  const kept = await done();
  expect(kept).toMatch(/~ project: name Shop → Shop 2, stale_after 90d → –\n/);
  expect(kept).toMatch(/~ limits: sends 200,000 → 300,000\n/);
  expect(kept).toMatch(/~ provider apns: bundle_id com\.example\.shop → com\.example\.shop2\n/);
  expect(kept).toMatch(/~ webhook .*: description – → Orders\n/);
  expect(kept).toMatch(/and kept: limit exports, provider webpush, token reports\. --prune removes them\.\n/);
  const refused = await apply("--prune");
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining("Add --yes")]);
  expect(await isValid(await content("reports.token"))).toBe(true);
  expect(await done("--prune", "--yes")).toMatch(/- token reports: tok_\w+\nMade 3 changes\.\n$/);
  await eventually(async () => expect(await isValid(await content("reports.token"))).toBe(false));
  expect(await done("--prune", "--check")).toMatch(/No difference/);
}, 120_000);

test("an exported project and its file do not differ", async () => {
  const { key, simulators } = await newFolder();
  await writeFile(join(folder, "shop.yaml"), first({ key, apns: simulators.apns, hook: receiver.urlOf("/exported") }));
  const id = /The project is (prj_\w+)/.exec(await done())?.[1] ?? "";
  const { ca, fcm: endpoint } = simulators;
  const settings = { service_account: serviceAccount(), endpoint, ca };
  await system.admin(`PUT /projects/${id}/providers/fcm`, { body: settings });

  const exported = await herald("project", "export", id, "--json");
  expect([exported.exitCode, exported.stderr]).toEqual([0, ""]);
  const { file, secrets } = JSON.parse(exported.stdout);
  expect([file, secrets.toSorted()]).toEqual([
    `${key}.yaml`,
    ["AuthKey_E2EKEY0001.p8", "apns-ca.pem", "fcm-ca.pem", "service-account.json"],
  ]);
  const checked = await herald("apply", "-f", file, "--check", "--prune", "--json");
  expect([checked.exitCode, checked.stderr]).toEqual([0, ""]);
  expect(JSON.parse(checked.stdout)).toEqual({ project: { key, id }, changes: [], kept: [], made: false });
  const again = await herald("project", "export", id);
  expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining("EEXIST")]);
  for (const secret of ["PRIVATE KEY", "hpt_", "whsec_"]) expect(await content(file)).not.toContain(secret);
}, 60_000);

test("what cannot be applied is refused before anything is changed", async () => {
  const { key, simulators } = await newFolder();
  const file = { key, apns: simulators.apns, hook: receiver.urlOf("/refused") };
  const refusal = async (text: string) => {
    await writeFile(join(folder, "shop.yaml"), text);
    const { exitCode, stdout, stderr } = await apply();
    expect([exitCode, stdout]).toEqual([2, ""]);
    return stderr;
  };
  await writeFile(join(folder, "backend.token"), "not a token\n");
  expect(await refusal(first(file))).toMatch(/^shop\.yaml:16:5: tokens\[0\]: backend\.token exists and has no token/m);
  await rm(join(folder, "backend.token"));
  expect(await refusal(first(file).replace("AuthKey_E2EKEY0001.p8 }", "none.p8 }"))).toMatch(
    /^shop\.yaml:11:18: providers\.apns\.private_key: there is no file .*none\.p8$/m,
  );
  await writeFile(join(folder, "shop.yaml"), first(file));
  await done();
  const narrower = await refusal(first(file).replace("[send, read, devices]", "[send]"));
  expect(narrower).toContain("a token never changes; move backend.token away");
  await rm(join(folder, "backend.token"));
  expect(await done()).toMatch(
    /~ token backend: a new one, its secret into backend\.token; the old one is revoked then\n/,
  );

  // A folder that takes no file is found before there is a secret to lose.
  await rm(join(folder, "backend.token"));
  await chmod(folder, 0o500);
  const full = process.getuid?.() === 0 ? undefined : await apply();
  await chmod(folder, 0o700);
  if (full !== undefined) expect([full.exitCode, full.stderr]).toEqual([2, expect.stringContaining("EACCES")]);
}, 60_000);

/** Stands before the gateway, and kills the command before its change number `at` goes on, or after it was made, before its answer. */
const startKiller = async (at: number, when: "before" | "after", child: () => ChildProcess) => {
  let changes = 0;
  const server = createServer(async (request, response) => {
    const isChange = request.method !== "GET" && ++changes === at;
    const kill = async () => {
      child().kill("SIGKILL");
      await once(child(), "exit");
      response.destroy();
    };
    const body = Buffer.concat(await request.toArray());
    if (isChange && when === "before") return kill();
    const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
    const answer = await fetch(`${system.gateway}${request.url}`, {
      method: request.method ?? "GET",
      headers: headers as Record<string, string>,
      ...(body.length > 0 && { body }),
    });
    if (isChange) return kill();
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "application/json" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

/** Runs `apply`, killed at its change number `at`. False: it ended before. */
const applyKilled = async (at: number, when: "before" | "after"): Promise<boolean> => {
  let child: ChildProcess;
  const killer = await startKiller(at, when, () => child);
  child = spawn(join(bin, "herald"), ["apply", "-f", "shop.yaml", "--prune", "--yes"], {
    cwd: folder,
    env: { PATH: `${bin}:${process.env.PATH}`, ...environment(killer.url) },
    stdio: "ignore",
  });
  const [exitCode] = await once(child, "exit");
  killer.stop();
  expect([0, null]).toContain(exitCode);
  return exitCode === null;
};

/** What the project is, without what differs from one project to the next. */
const endOf = async (key: string) => {
  const { body } = await system.admin(`GET /projects?key=${key}`);
  const [{ id }] = body.data;
  await commandLine(environment()).json("project", "export", id, "-f", join(folder, "exported.yaml"));
  const exported = await content("exported.yaml");
  await rm(join(folder, "exported.yaml"));
  const { body: tokens } = await system.admin(`GET /projects/${id}/tokens`);
  const names: string[] = tokens.data.map(({ name }: { name: string }) => name);
  return { file: exported.replaceAll(key, "<key>"), tokens: names.toSorted() };
};

/** Usually each change is killed once: before it in one file and after it in the other. */
const moments = process.env.HERALD_TEST_LONG ? (["before", "after"] as const) : (["before"] as const);
const other = { before: "after", after: "before" } as const;

test("killed at each change, before it or after it, a second run comes to the same end", async () => {
  const ends: unknown[] = [];
  const secondEnds: unknown[] = [];
  const kills = { before: 0, after: 0 };
  for (const begin of moments)
    for (let at = 1, killed = true; killed; at++) {
      const when = at % 2 === 1 ? begin : other[begin];
      const { key, simulators } = await newFolder();
      const file = { key, apns: simulators.apns, hook: receiver.urlOf(`/${key}`) };
      await writeFile(join(folder, "shop.yaml"), first(file));
      const inFirst = await applyKilled(at, when);
      await applied();
      expect(await isValid(await content("backend.token"))).toBe(true);
      ends.push(await endOf(key));

      const old = await content("backend.token");
      for (const name of ["backend.token", "hook.secret"]) await rm(join(folder, name));
      await writeFile(join(folder, "shop.yaml"), second(file));
      const inSecond = await applyKilled(at, other[when]);
      // Whenever it ends, a secret that someone has is valid.
      const now = await content("backend.token").catch(() => old);
      expect(await isValid(now)).toBe(true);
      await applied();
      expect(await applied("--dry-run")).toBe(0);
      await eventually(async () => expect(await isValid(old)).toBe(false));
      expect(await isValid(await content("backend.token"))).toBe(true);
      secondEnds.push(await endOf(key));
      killed = inFirst || inSecond;
      kills[when] += Number(inFirst);
      kills[other[when]] += Number(inSecond);
    }
  for (const moment of ["before", "after"] as const) expect(kills[moment]).toBeGreaterThan(5 * moments.length);
  expect(new Set(ends.map((end) => JSON.stringify(end))).size).toBe(1);
  expect(new Set(secondEnds.map((end) => JSON.stringify(end))).size).toBe(1);
}, 300_000);
