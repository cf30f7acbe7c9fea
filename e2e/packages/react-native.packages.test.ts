import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
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
// Maven builds it.
const hasLibrary = existsSync(join(release, `herald-android-${herald.version}-maven.zip`));
if (!hasLibrary)
  process.stderr.write("SKIPPED: the library for Android in @herald/react-native, because there is no Maven\n");
let folder: string;
let published: string;
let plugins: string;
let autolinking: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-react-native-"));
  published = join(folder, "node_modules/@herald/react-native");
  await mkdir(published, { recursive: true });
  const packed = join(release, `herald-react-native-${herald.version}.tgz`);
  await run("tar", ["-xzf", packed, "-C", published, "--strip-components=1"]);
  // An app has the package `expo`, which hands these on.
  const modules = await fetchExpo();
  plugins = createRequire(join(modules, "expo")).resolve("@expo/config-plugins");
  autolinking = join(modules, ".bin/expo-modules-autolinking");
  await mkdir(join(folder, "node_modules/expo"), { recursive: true });
  const handOn = `module.exports = require(${JSON.stringify(plugins)});`;
  await writeFile(join(folder, "node_modules/expo/config-plugins.js"), handOn);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const props = { gateway: "https://push.example.com/", project: "prj_1", mode: "production" };

const ofIos = { ios: { bundleIdentifier: "com.example.shop" } };
const ofAndroid = { android: { package: "com.example" } };

/** Runs the plugin as `expo prebuild` does: found by its name in the app's `app.json`, for the platforms that the app has. */
const prebuild = (
  app: string,
  settings: object = props,
  native: { readonly ios?: object; readonly android?: object } = { ...ofIos, ...ofAndroid },
) => {
  const plugin = ["@herald/react-native", settings];
  const config = { name: "Shop", slug: "shop", _internal: { projectRoot: app }, ...native, plugins: [plugin] };
  const script = `
    const { compileModsAsync, withPlugins } = require("expo/config-plugins");
    const config = ${JSON.stringify(config)};
    Promise.resolve().then(() => compileModsAsync(withPlugins(config, config.plugins), {
      projectRoot: ${JSON.stringify(app)},
      platforms: ${JSON.stringify(Object.keys(native))},
    })).catch((error) => { console.error(error); process.exit(1); });`;
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

test("a package without a repository builds for Android alone, and for iOS with the option that names one", async () => {
  const manifest = join(published, "package.json");
  const text = await readFile(manifest, "utf8");
  const { repository: _, ...without } = JSON.parse(text);
  await writeFile(manifest, JSON.stringify(without));
  try {
    const app = await newApp("android");
    await rm(join(app, "ios"), { recursive: true });
    for (const native of [ofAndroid, { ...ofAndroid, ios: { supportsTablet: true } }]) {
      const settings = { gateway: "https://push.example.com", project: "prj_1" };
      if ("ios" in native)
        await expect(prebuild(await newApp("both"), settings, native)).rejects.toThrow(/ios.bundleIdentifier/);
      await prebuild(app, settings, ofAndroid);
    }
    expect(await readFile(join(app, "android/app/src/main/AndroidManifest.xml"), "utf8")).toContain(
      "io.herald.project",
    );

    const phone = await newApp("ios");
    await rm(join(phone, "android"), { recursive: true });
    await expect(prebuild(phone, props, ofIos)).rejects.toThrow(
      /in app.json: `swiftPackage` must be the https address of Herald's repository, such as https:\S+; it is missing/,
    );
    await prebuild(phone, { ...props, swiftPackage: "https://git.example.com/fork.git" }, ofIos);
    expect(await readFile(join(phone, files[0] ?? ""), "utf8")).toContain('"https://git.example.com/fork.git"');
  } finally {
    await writeFile(manifest, text);
  }
});

test("it says what it was not given, and what is no option", async () => {
  const app = await newApp("fourth");
  await expect(prebuild(app, { gateway: "push", mode: "test", prject: "prj_1" })).rejects.toThrow(
    /`gateway` must be Herald's address.*; it is "push"; `project` must be the project's id.*; it is missing; `mode` must be development or production; it is "test"; `prject` is no option; these are: gateway, project, mode, swiftPackage/,
  );
});

test.runIf(hasLibrary)(
  "Gradle gets the native module, and the library for Android as a project of its own",
  async () => {
    const app = await newApp("linked");
    await writeFile(
      join(app, "package.json"),
      JSON.stringify({ dependencies: { "@herald/react-native": herald.version } }),
    );
    const { stdout } = await run(autolinking, ["resolve", "--platform", "android", "--json"], { cwd: app });
    const { modules } = JSON.parse(stdout);
    const [project] = modules.find(
      ({ packageName }: { packageName: string }) => packageName === "@herald/react-native",
    ).projects;
    expect(project).toMatchObject({ modules: [{ classifier: "io.herald.reactnative.HeraldModule" }] });
    const [{ name, aarFilePath }] = project.aarProjects;
    const gradle = await readFile(join(project.sourceDir, "build.gradle"), "utf8");
    expect(gradle).toContain(`implementation project(":\${project.name}\\${name.slice(project.name.length)}")`);
    expect((await run("unzip", ["-Z1", aarFilePath])).stdout).toContain("classes.jar\n");
  },
);

test("the code is at most 16 KB, and imports what the app has", async () => {
  const code = await readFile(join(published, "dist/index.js"), "utf8");
  expect(Buffer.byteLength(code)).toBeLessThanOrEqual(16_000);
  const imported = [...code.matchAll(/from\s*"([^"]+)"/g)].map(([, name]) => name);
  const own = JSON.parse(await readFile(join(published, "package.json"), "utf8"));
  expect(imported.toSorted()).toEqual(Object.keys(own.peerDependencies).toSorted());
  expect(own).toMatchObject({ type: "commonjs" });
});
