import { execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPackage } from "./package.ts";

const root = join(import.meta.dirname, "../..");
const maxBytes = 18_432;
let folder: string;
let published: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-client-"));
  published = join(folder, "node_modules/@herald/client");
  await buildPackage(root, "client", published);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("minified it is at most 18 KB, and imports nothing", async () => {
  const file = join(published, "dist/index.js");
  const code = await readFile(file, "utf8");
  const bundle = await rolldown({ input: file, logLevel: "warn" });
  const { output } = await bundle.generate({ minify: true });
  expect(Buffer.byteLength(output[0].code)).toBeLessThanOrEqual(maxBytes);
  expect(code).not.toMatch(/\bimport\b\s*[({"'*]|\bfrom\s*["']|\brequire\(/);
  expect(JSON.parse(await readFile(join(published, "package.json"), "utf8"))).not.toHaveProperty("dependencies");
});

test("an uncaught error is printed with its class, fields and id, in a few lines", async () => {
  const answer = {
    type: "/docs/errors#validation-failed",
    errors: ["notification.targets: at least one target is required"],
    problems: [{ pointer: "#/notification/targets", detail: "at least one target is required", code: "too-few" }],
    instance: "0198f1c2",
  };
  const program = `import { Herald } from "@herald/client";
const headers = { "content-type": "application/problem+json" };
const fetch = async () => new Response(${JSON.stringify(JSON.stringify(answer))}, { status: 422, headers });
await new Herald({ url: "https://herald.example.com", token: "hpt_1", fetch }).notifications.send({ targets: [] });
`;
  await writeFile(join(folder, "uncaught.mjs"), program);
  const { status, stderr } = spawnSync(process.execPath, ["uncaught.mjs"], { cwd: folder, encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toContain("\nHeraldError: notification.targets: at least one target is required\n");
  expect(stderr).toContain(`{
  slug: 'validation-failed',
  status: 422,
  requestId: '0198f1c2',
  errors: [ 'notification.targets: at least one target is required' ]
}`);
  expect(stderr.trim().split("\n").length).toBeLessThan(25);
  expect(Math.max(...stderr.split("\n").map((line) => line.length))).toBeLessThan(160);
});

test("its types need neither zod nor Node's, and hold what one writes to them", async () => {
  for (const file of await readdir(join(published, "dist")))
    if (file.endsWith(".d.ts"))
      expect(await readFile(join(published, "dist", file), "utf8")).not.toMatch(/zod|contracts"/);
  await writeFile(
    join(folder, "backend.ts"),
    `import { Herald, type Device } from "@herald/client";
const herald = new Herald({ url: "https://herald.example.com", token: "hpt_1" });
export const run = async (): Promise<Device[]> => {
  const sent = await herald.notifications.send({ title: "Hello", targets: ["topic:news"] });
  const { counts } = await sent.completed();
  const opened: number = counts.opened;
  await herald.notifications.send({ title: "Later", targets: ["all"], send_at: new Date(0) });
  // @ts-expect-error no target has this prefix
  await herald.notifications.send({ title: String(opened), targets: ["nonsense:x"] });
  for await (const event of herald.events.follow({ types: ["io.herald.notification.opened.v1"] })) {
    const user: string | undefined = event.data.user_id;
    if (user) break;
  }
  const devices: Device[] = [];
  for await (const device of herald.devices.list({ status: "active" })) devices.push(device);
  return devices;
};
`,
  );
  const options = [
    "--noEmit",
    "--strict",
    "--module",
    "nodenext",
    "--lib",
    "es2023,dom,dom.asynciterable",
    "--types",
    "",
  ];
  const tsc = join(root, "node_modules/.bin/tsc");
  const run = () => execFileSync(tsc, [...options, "backend.ts"], { cwd: folder, encoding: "utf8" });
  expect(run()).toBe("");
});
