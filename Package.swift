// swift-tools-version: 6.0
// Herald's kit for iPhone apps, kits/swift. The manifest stands here because Swift Package Manager looks for it at a repository's root.

import PackageDescription

let kit = "kits/swift"

/// Where Apple's frameworks are missing, the thin modules are compiled against stubs of them.
#if os(Linux)
    let stubs = ["ActivityKit", "Security", "UIKit", "UserNotifications"]
#else
    let stubs: [String] = []
#endif
/// The dependencies of the modules above Apple's frameworks. With types, because the compiler takes minutes to infer them.
let thin: [Target.Dependency] = ["HeraldCore"] + stubs.map { Target.Dependency(stringLiteral: $0) }
let stubTargets: [Target] = stubs.map { Target.target(name: $0, path: "\(kit)/Stubs/\($0)") }
/// The card belongs to an extension of its own.
let examples: [String] = ["README.md", "project.yml", "OrderCard.swift"] + (stubs.isEmpty ? [] : ["ExampleApp.swift"])
let modules: [Target] = [
    .target(name: "HeraldCore", path: "\(kit)/Sources/HeraldCore"),
    .target(name: "Herald", dependencies: thin, path: "\(kit)/Sources/Herald"),
    .target(name: "HeraldLiveActivities", dependencies: thin, path: "\(kit)/Sources/HeraldLiveActivities"),
    .target(name: "HeraldNotificationService", dependencies: thin, path: "\(kit)/Sources/HeraldNotificationService"),
    .target(
        name: "HeraldExample", dependencies: ["Herald", "HeraldLiveActivities", "HeraldNotificationService"],
        path: "examples/swift", exclude: examples),
    .testTarget(name: "HeraldCoreTests", dependencies: ["HeraldCore"], path: "\(kit)/Tests/HeraldCoreTests"),
]

let package = Package(
    name: "herald",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [
        .library(name: "Herald", targets: ["Herald"]),
        .library(name: "HeraldLiveActivities", targets: ["HeraldLiveActivities"]),
        .library(name: "HeraldNotificationService", targets: ["HeraldNotificationService"]),
    ],
    targets: modules + stubTargets,
    swiftLanguageModes: [.v6]
)
