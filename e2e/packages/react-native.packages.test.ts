import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import herald from "../../package.json" with { type: "json" };
import { repository } from "./build-release.ts";
import { fetchExpo } from "./tools.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const source = join(root, "packages/react-native");
const release = inject("heraldRelease");
let folder: string;
let published: string;
let plugins: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-react-native-"));
  published = join(folder, "node_modules/@herald/react-native");
  await mkdir(published, { recursive: true });
  const packed = join(release, `herald-react-native-${herald.version}.tgz`);
  await run("tar", ["-xzf", packed, "-C", published, "--strip-components=1"]);
  // An app has the package `expo`, which hands these on.
  plugins = createRequire(join(await fetchExpo(), "expo")).resolve("@expo/config-plugins");
  await mkdir(join(folder, "node_modules/expo"), { recursive: true });
  const handOn = `module.exports = require(${JSON.stringify(plugins)});`;
  await writeFile(join(folder, "node_modules/expo/config-plugins.js"), handOn);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const props = { gateway: "https://push.example.com/", project: "prj_1", mode: "production" };

/** Runs the plugin as `expo prebuild` does. */
const prebuild = (app: string, settings: object = props) => {
  const ios = { bundleIdentifier: "com.example.shop" };
  const config = {
    name: "Shop",
    slug: "shop",
    _internal: { projectRoot: app },
    ios,
    android: { package: "com.example" },
  };
  const script = `
    const { compileModsAsync } = require("expo/config-plugins");
    const config = require("@herald/react-native/app.plugin.js")(${JSON.stringify(config)}, ${JSON.stringify(settings)});
    compileModsAsync(config, { projectRoot: ${JSON.stringify(app)}, platforms: ["ios", "android"] })
      .catch((error) => { console.error(error); process.exit(1); });`;
  return run(process.execPath, ["-e", script], { cwd: folder });
};
const newApp = async (name: string): Promise<string> => {
  const app = join(folder, name);
  await cp(join(source, "test/template"), app, { recursive: true });
  await writeFile(join(app, "package.json"), "{}");
  return app;
};

const files = [
  "ios/Shop.xcodeproj/project.pbxproj",
  "ios/Shop/Info.plist",
  "ios/Shop/Shop.entitlements",
  "ios/HeraldNotificationService/Info.plist",
  "ios/HeraldNotificationService/NotificationService.swift",
  "android/app/src/main/AndroidManifest.xml",
];
const readAll = (app: string) => Promise.all(files.map((file) => readFile(join(app, file), "utf8")));

test("the plugin adds the extension, the entitlement, the background mode, gateway and project", async () => {
  const app = await newApp("first");
  await prebuild(app);
  const [project = "", info, entitlements, extension, swift, manifest] = await readAll(app);
  expect(info).toMatch(/<string>fetch<\/string>\s*<string>remote-notification<\/string>/);
  expect(entitlements).toMatch(/<key>aps-environment<\/key>\s*<string>production<\/string>/);
  expect(extension).toMatch(/<key>HeraldGateway<\/key>\s*<string>https:\/\/push.example.com<\/string>/);
  expect(swift).toContain("class NotificationService: HeraldNotificationService {}");
  expect(manifest).toContain('<meta-data android:name="io.herald.gateway" android:value="https://push.example.com"/>');
  expect(manifest).toContain('<meta-data android:name="io.herald.project" android:value="prj_1"/>');
  expect(project).toContain('PRODUCT_BUNDLE_IDENTIFIER = "com.example.shop.HeraldNotificationService"');
  expect(project).toContain(`repositoryURL = "${repository}.git"`);

  // What Xcode follows from the app to the code of the extension.
  const { default: xcode } = await import(createRequire(plugins).resolve("xcode"));
  const parsed = xcode.project(join(app, files[0] ?? "")).parseSync();
  const { objects } = parsed.hash.project;
  const extensionId = parsed.findTargetKey("HeraldNotificationService");
  const { target: shop } = parsed.getTarget("com.apple.product-type.application");
  expect(objects.PBXTargetDependency[shop.dependencies[0].value].target).toBe(extensionId);
  const embedded = objects.PBXCopyFilesBuildPhase[shop.buildPhases.at(-1).value].files[0].value;
  const { productReference, packageProductDependencies, buildPhases } = objects.PBXNativeTarget[extensionId];
  expect(objects.PBXBuildFile[embedded].fileRef).toBe(productReference);
  const product = objects.XCSwiftPackageProductDependency[packageProductDependencies[0].value];
  expect(product.productName).toBe("HeraldNotificationService");
  expect(objects.XCRemoteSwiftPackageReference[product.package].requirement.kind).toBe("exactVersion");
  const [compiled] = objects.PBXSourcesBuildPhase[buildPhases[0].value].files;
  const { path } = objects.PBXFileReference[objects.PBXBuildFile[compiled.value].fileRef];
  await stat(join(app, "ios/HeraldNotificationService", path));
});

test("run twice, on the same app and on another one, it writes the same bytes", async () => {
  const [app, other] = [await newApp("second"), await newApp("third")];
  await Promise.all([prebuild(app), prebuild(other)]);
  const once = await readAll(app);
  expect(await readAll(other)).toEqual(once);
  await prebuild(app);
  expect(await readAll(app)).toEqual(once);
});

test("it says what it was not given", async () => {
  const app = await newApp("fourth");
  await expect(prebuild(app, { gateway: "push", mode: "test" })).rejects.toThrow(
    /`gateway` must be Herald's address.*`project` must be the project's id.*`mode` must be/,
  );
});

test("the code is at most 15 KB, and imports what the app has", async () => {
  const code = await readFile(join(published, "dist/index.js"), "utf8");
  expect(Buffer.byteLength(code)).toBeLessThanOrEqual(15_000);
  const imported = [...code.matchAll(/from\s*"([^"]+)"/g)].map(([, name]) => name);
  const own = JSON.parse(await readFile(join(published, "package.json"), "utf8"));
  expect(imported.toSorted()).toEqual(Object.keys(own.peerDependencies).toSorted());
  expect(own).toMatchObject({ type: "commonjs" });
});
