/**
 * The config plugin for Expo: `["@herald/react-native", { gateway, project, mode, swiftPackage }]`. Prebuild runs it; a second run changes
 * nothing.
 *
 * iOS: the entitlement and the background mode for pushes, and a notification service extension on Herald's Swift package. Android: gateway
 * and project in the manifest.
 */
const { AndroidConfig, withAndroidManifest, withDangerousMod, withEntitlementsPlist, withInfoPlist, withXcodeProject } =
  require("expo/config-plugins");
const { mkdirSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const own = require("./package.json");

const target = "HeraldNotificationService";
/** Xcode's ids are 24 hexadecimal digits. Fixed ones make each run write the same project. */
const id = (number) => `4845524C44${number.toString(16).toUpperCase().padStart(14, "0")}`;
const ids = Object.fromEntries(
  [
    ...[
      "source",
      "sourceBuild",
      "plist",
      "product",
      "productBuild",
      "group",
      "sources",
      "frameworks",
      "resources",
      "target",
    ],
    ...[
      "debug",
      "release",
      "configurations",
      "proxy",
      "dependency",
      "embed",
      "package",
      "packageProduct",
      "packageBuild",
    ],
  ].map((name, index) => [name, id(index + 1)]),
);

const swiftSource = `import HeraldNotificationService

/// Reports receipts, and shows images and buttons.
class NotificationService: HeraldNotificationService {}
`;

const infoPlist = (gateway) => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>CFBundleDisplayName</key>
  <string>${target}</string>
  <key>CFBundleExecutable</key>
  <string>$(EXECUTABLE_NAME)</string>
  <key>CFBundleIdentifier</key>
  <string>$(PRODUCT_BUNDLE_IDENTIFIER)</string>
  <key>CFBundleInfoDictionaryVersion</key>
  <string>6.0</string>
  <key>CFBundleName</key>
  <string>$(PRODUCT_NAME)</string>
  <key>CFBundlePackageType</key>
  <string>XPC!</string>
  <key>CFBundleShortVersionString</key>
  <string>$(MARKETING_VERSION)</string>
  <key>CFBundleVersion</key>
  <string>$(CURRENT_PROJECT_VERSION)</string>
  <key>HeraldGateway</key>
  <string>${gateway}</string>
  <key>NSExtension</key>
  <dict>
    <key>NSExtensionPointIdentifier</key>
    <string>com.apple.usernotifications.service</string>
    <key>NSExtensionPrincipalClass</key>
    <string>$(PRODUCT_MODULE_NAME).NotificationService</string>
  </dict>
</dict>
</plist>
`;

/** By option: what it may be, as a pattern and in words. */
const options = {
  gateway: [/^https?:\/\/[\w.:/-]+$/, "Herald's address, such as https://push.example.com"],
  project: [/^prj_\w+$/, "the project's id, such as prj_06bq4ghm31tz5d2ns8y7k9w0ac"],
  mode: [/^(development|production)$/, "development or production"],
  swiftPackage: [
    /^(git\+)?https:\/\/[\w./:-]+$/,
    "the https address of Herald's repository, such as https://github.com/owner/herald.git",
  ],
};

const refuse = (problems) => {
  throw new Error(`@herald/react-native in app.json: ${problems.join("; ")}`);
};
const shown = (value) => (value === undefined ? "is missing" : `is ${JSON.stringify(value)}`);
const problemOf = (name, value) =>
  options[name][0].test(typeof value === "string" ? value : "")
    ? []
    : [`\`${name}\` must be ${options[name][1]}; it ${shown(value)}`];

/** What either platform needs is checked whenever Expo reads the configuration; what iOS alone needs, when it is built for iOS. */
const checked = (props) => {
  const given = { mode: "development", ...props };
  const required = ["gateway", "project", "mode", ...(given.swiftPackage === undefined ? [] : ["swiftPackage"])];
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(options, name));
  const problems = [
    ...required.flatMap((name) => problemOf(name, given[name])),
    ...unknown.map((name) => `\`${name}\` is no option; these are: ${Object.keys(options).join(", ")}`),
  ];
  if (problems.length > 0) refuse(problems);
  return { ...given, gateway: given.gateway.replace(/\/+$/, "") };
};

const checkedForIos = (config, { swiftPackage = own.repository?.url }) => {
  const { bundleIdentifier } = config.ios ?? {};
  const problems = [
    ...problemOf("swiftPackage", swiftPackage),
    ...(bundleIdentifier
      ? []
      : [
          "`ios.bundleIdentifier` must be the app's, such as com.example.shop: the extension's begins with it; it is missing",
        ]),
  ];
  if (problems.length > 0) refuse(problems);
  return { bundleIdentifier, swiftPackage: swiftPackage.replace(/^git\+/, "") };
};

/** Adds an object to a section of the project. */
const put = (objects, section, key, name, object) => {
  objects[section] ??= {};
  objects[section][key] = { isa: section, ...object };
  objects[section][`${key}_comment`] = name;
};
const ref = (value, comment) => ({ value, comment });

const addFiles = (objects) => {
  const file = (key, name, type) =>
    put(objects, "PBXFileReference", key, name, { lastKnownFileType: type, path: name, sourceTree: '"<group>"' });
  file(ids.source, "NotificationService.swift", "sourcecode.swift");
  file(ids.plist, "Info.plist", "text.plist.xml");
  put(objects, "PBXFileReference", ids.product, `${target}.appex`, {
    explicitFileType: '"wrapper.app-extension"',
    includeInIndex: 0,
    path: `${target}.appex`,
    sourceTree: "BUILT_PRODUCTS_DIR",
  });
  put(objects, "PBXGroup", ids.group, target, {
    children: [ref(ids.source, "NotificationService.swift"), ref(ids.plist, "Info.plist")],
    path: target,
    sourceTree: '"<group>"',
  });
  const build = (key, name, object) => put(objects, "PBXBuildFile", key, name, object);
  build(ids.sourceBuild, "NotificationService.swift in Sources", {
    fileRef: ids.source,
    fileRef_comment: "NotificationService.swift",
  });
  build(ids.packageBuild, `${target} in Frameworks`, { productRef: ids.packageProduct, productRef_comment: target });
  build(ids.productBuild, `${target}.appex in Embed Foundation Extensions`, {
    fileRef: ids.product,
    fileRef_comment: `${target}.appex`,
    settings: { ATTRIBUTES: ["RemoveHeadersOnCopy"] },
  });
};

const addTarget = (objects, bundle, deploymentTarget) => {
  const phase = (section, key, name, files) =>
    put(objects, section, key, name, { buildActionMask: 2147483647, files, runOnlyForDeploymentPostprocessing: 0 });
  phase("PBXSourcesBuildPhase", ids.sources, "Sources", [ref(ids.sourceBuild, "NotificationService.swift in Sources")]);
  phase("PBXFrameworksBuildPhase", ids.frameworks, "Frameworks", [ref(ids.packageBuild, `${target} in Frameworks`)]);
  phase("PBXResourcesBuildPhase", ids.resources, "Resources", []);
  const buildSettings = {
    CODE_SIGN_STYLE: "Automatic",
    CURRENT_PROJECT_VERSION: 1,
    INFOPLIST_FILE: `${target}/Info.plist`,
    IPHONEOS_DEPLOYMENT_TARGET: deploymentTarget,
    LD_RUNPATH_SEARCH_PATHS: '"$(inherited) @executable_path/Frameworks @executable_path/../../Frameworks"',
    MARKETING_VERSION: "1.0",
    PRODUCT_BUNDLE_IDENTIFIER: `"${bundle}.${target}"`,
    PRODUCT_NAME: '"$(TARGET_NAME)"',
    SKIP_INSTALL: "YES",
    SWIFT_VERSION: "5.0",
    TARGETED_DEVICE_FAMILY: '"1,2"',
  };
  for (const [key, name] of [
    [ids.debug, "Debug"],
    [ids.release, "Release"],
  ])
    put(objects, "XCBuildConfiguration", key, name, { buildSettings: { ...buildSettings }, name });
  put(objects, "XCConfigurationList", ids.configurations, `Build configuration list for PBXNativeTarget "${target}"`, {
    buildConfigurations: [ref(ids.debug, "Debug"), ref(ids.release, "Release")],
    defaultConfigurationIsVisible: 0,
    defaultConfigurationName: "Release",
  });
  put(objects, "PBXNativeTarget", ids.target, target, {
    buildConfigurationList: ids.configurations,
    buildConfigurationList_comment: `Build configuration list for PBXNativeTarget "${target}"`,
    buildPhases: [ref(ids.sources, "Sources"), ref(ids.frameworks, "Frameworks"), ref(ids.resources, "Resources")],
    buildRules: [],
    dependencies: [],
    name: target,
    packageProductDependencies: [ref(ids.packageProduct, target)],
    productName: target,
    productReference: ids.product,
    productReference_comment: `${target}.appex`,
    productType: '"com.apple.product-type.app-extension"',
  });
};

const addPackage = (objects, swiftPackage) => {
  const name = 'XCRemoteSwiftPackageReference "herald"';
  put(objects, "XCRemoteSwiftPackageReference", ids.package, name, {
    repositoryURL: `"${swiftPackage}"`,
    requirement: { kind: "exactVersion", version: own.version },
  });
  put(objects, "XCSwiftPackageProductDependency", ids.packageProduct, target, {
    package: ids.package,
    package_comment: name,
    productName: target,
  });
  return ref(ids.package, name);
};

const embedInApp = (objects, app, root) => {
  put(objects, "PBXContainerItemProxy", ids.proxy, "PBXContainerItemProxy", {
    containerPortal: root,
    containerPortal_comment: "Project object",
    proxyType: 1,
    remoteGlobalIDString: ids.target,
    remoteInfo: target,
  });
  put(objects, "PBXTargetDependency", ids.dependency, "PBXTargetDependency", {
    target: ids.target,
    target_comment: target,
    targetProxy: ids.proxy,
    targetProxy_comment: "PBXContainerItemProxy",
  });
  put(objects, "PBXCopyFilesBuildPhase", ids.embed, "Embed Foundation Extensions", {
    buildActionMask: 2147483647,
    dstPath: '""',
    dstSubfolderSpec: 13,
    files: [ref(ids.productBuild, `${target}.appex in Embed Foundation Extensions`)],
    name: '"Embed Foundation Extensions"',
    runOnlyForDeploymentPostprocessing: 0,
  });
  app.dependencies = [...(app.dependencies ?? []), ref(ids.dependency, "PBXTargetDependency")];
  app.buildPhases.push(ref(ids.embed, "Embed Foundation Extensions"));
};

const addExtension = (xcode, bundle, swiftPackage) => {
  const { objects } = xcode.hash.project;
  if (objects.PBXNativeTarget[ids.target]) {
    addPackage(objects, swiftPackage);
    return;
  }
  const { uuid: root, firstProject } = xcode.getFirstProject();
  const app = xcode.getTarget("com.apple.product-type.application").target;
  const deploymentTarget = xcode.getBuildProperty("IPHONEOS_DEPLOYMENT_TARGET") ?? "15.1";
  addFiles(objects);
  addTarget(objects, bundle, deploymentTarget);
  embedInApp(objects, app, root);
  firstProject.packageReferences = [...(firstProject.packageReferences ?? []), addPackage(objects, swiftPackage)];
  firstProject.targets.push(ref(ids.target, target));
  objects.PBXGroup[firstProject.mainGroup].children.push(ref(ids.group, target));
  objects.PBXGroup[firstProject.productRefGroup].children.push(ref(ids.product, `${target}.appex`));
};

const withIos = (config, settings) => {
  const { gateway, mode } = settings;
  let changed = withEntitlementsPlist(config, (mod) => {
    mod.modResults["aps-environment"] = mode;
    return mod;
  });
  changed = withInfoPlist(changed, (mod) => {
    const modes = mod.modResults.UIBackgroundModes ?? [];
    mod.modResults.UIBackgroundModes = [...new Set([...modes, "remote-notification"])];
    return mod;
  });
  changed = withDangerousMod(changed, [
    "ios",
    (mod) => {
      checkedForIos(config, settings);
      const folder = join(mod.modRequest.platformProjectRoot, target);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "NotificationService.swift"), swiftSource);
      writeFileSync(join(folder, "Info.plist"), infoPlist(gateway));
      return mod;
    },
  ]);
  return withXcodeProject(changed, (mod) => {
    const { bundleIdentifier, swiftPackage } = checkedForIos(config, settings);
    addExtension(mod.modResults, bundleIdentifier, swiftPackage);
    return mod;
  });
};

const withAndroid = (config, { gateway, project }) =>
  withAndroidManifest(config, (mod) => {
    const application = AndroidConfig.Manifest.getMainApplicationOrThrow(mod.modResults);
    const add = AndroidConfig.Manifest.addMetaDataItemToMainApplication;
    add(application, "io.herald.gateway", gateway);
    add(application, "io.herald.project", project);
    return mod;
  });

module.exports = (config, props) => {
  const settings = checked(props);
  return withAndroid(withIos(config, settings), settings);
};
