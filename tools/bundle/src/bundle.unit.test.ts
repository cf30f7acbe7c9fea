import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bundle, bundleOf } from "./bundle.ts";

const run = promisify(execFile);
let root: string;
/** Writes a source with the modification time `at`. A source saved while it is bundled would count as changed. */
const put = async (file: string, text: string, at = new Date(Date.now() - 60_000)) => {
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), text);
  await utimes(join(root, file), at, at);
};

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "herald-bundle-"));
  await put("package-lock.json", "{}");
  for (const name of ["bundle", "bundler", "notices"]) await put(`tools/bundle/src/${name}.ts`, "");
  await put("services/gateway/package.json", '{ "type": "module" }');
  await put("services/gateway/src/said.ts", 'export const said: string = "first";\n');
  await put(
    "services/gateway/src/main.ts",
    'import { createServer } from "node:http";\nimport { said } from "./said.ts";\nconsole.log(said, typeof createServer, process.moduleLoadList.some((name) => name.endsWith("undici")));\n',
  );
});
afterEach(() => rm(root, { recursive: true, force: true }));

const file = () => join(root, bundleOf("gateway"));
const printed = async () => (await run(process.execPath, [file()])).stdout.trim();

test("what has not changed is not bundled again, what has is; it runs without its sources, and loads no fetch with node:http", async () => {
  await bundle(root, ["gateway"]);
  const { ino } = await stat(file());
  await bundle(root, ["gateway"]);
  expect((await stat(file())).ino).toBe(ino);
  await put("services/gateway/src/said.ts", 'export const said: string = "second";\n', new Date());
  await bundle(root, ["gateway"]);
  await rm(join(root, "services/gateway/src"), { recursive: true });
  expect(await printed()).toBe("second function false");
  expect(JSON.parse(await readFile(`${file()}.map`, "utf8")).sources).toContain("services/gateway/src/said.ts");
});

test("a file that another build renames at the same moment does not fail this one", async () => {
  await mkdir(dirname(file()), { recursive: true });
  await mkdir(join(dirname(file()), "chunks"));
  // A broken link: the folder lists it, but it cannot be read.
  await symlink("renamed", join(dirname(file()), "chunks/one.js"));
  await bundle(root, ["gateway"]);
  expect(await printed()).toBe("first function false");
});

test("a library that is imported later is not read at the start, though it imports one that is", async () => {
  const library = async (name: string, text: string) => {
    await put(
      `node_modules/${name}/package.json`,
      `{ "name": "${name}", "version": "1.0.0", "license": "MIT", "type": "module", "main": "index.js" }`,
    );
    await put(`node_modules/${name}/index.js`, text);
    await put(`node_modules/${name}/LICENSE.md`, `Copyright of ${name}\n`);
  };
  await library("shared", 'export const shared = "shared";\n');
  await library("later", 'import { shared } from "shared";\nexport const later = ["later", shared].join(" ");\n');
  await put(
    "services/gateway/src/main.ts",
    'import { shared } from "shared";\nconst { later } = await import("later");\nconsole.log(shared, later);\n',
  );
  await bundle(root, ["gateway"]);
  expect(await printed()).toBe("shared later shared");
  const text = await readFile(file(), "utf8");
  expect(text).toMatch(/import\(["'`][^"'`]*later/);
  expect(text).not.toMatch(/from\s*["'`][^"'`]*later/);
  const notices = await readFile(join(root, "services/gateway/dist/THIRD_PARTY_NOTICES"), "utf8");
  expect(notices).toMatch(/^later 1\.0\.0, MIT\n\nCopyright of later\n.*\nshared 1\.0\.0, MIT\n/s);
});

test("a library that states no licence is not bundled", async () => {
  await put("node_modules/secret/package.json", '{ "name": "secret", "version": "2.0.0", "main": "index.js" }');
  await put("node_modules/secret/index.js", "export const secret = () => process.pid;\n");
  await put("services/gateway/src/main.ts", 'import { secret } from "secret";\nconsole.log(secret());\n');
  await expect(bundle(root, ["gateway"])).rejects.toThrow("secret 2.0.0 states no licence");
});

test("OpenTelemetry's gRPC runs where no library is installed", async () => {
  const installed = join(root, "node_modules");
  const base = "node_modules/@opentelemetry/otlp-grpc-exporter-base";
  await put("node_modules/@grpc/grpc-js/package.json", '{ "license": "MIT", "main": "index.js" }');
  await put("node_modules/@grpc/grpc-js/index.js", 'exports.status = "bundled";\n');
  await put(
    `${base}/package.json`,
    '{ "license": "MIT", "exports": { ".": { "require": "./index.cjs", "default": "./index.mjs" } } }',
  );
  await put(`${base}/index.cjs`, 'exports.status = () => require("@grpc/grpc-js").status;\n');
  await put(
    `${base}/index.mjs`,
    'import { createRequire } from "node:module";\nconst own = createRequire(import.meta.url);\nexport const status = () => own("@grpc/grpc-js").status;\n',
  );
  await put(
    "services/gateway/src/main.ts",
    'import { status } from "@opentelemetry/otlp-grpc-exporter-base";\nconsole.log(status());\n',
  );
  await bundle(root, ["gateway"]);
  await rm(installed, { recursive: true });
  expect(await printed()).toBe("bundled");
});

test("a program that cannot be bundled says why", async () => {
  await put("services/gateway/src/main.ts", 'import "./missing.ts";\n');
  await expect(bundle(root, ["gateway"])).rejects.toThrow("./missing.ts");
});
