// swift-tools-version: 6.0
// Herald's kit for iPhone apps, kits/swift. The manifest stands here because Swift Package Manager looks for it at a repository's root.

import PackageDescription

let kit = "kits/swift"

/// Where Apple's frameworks are missing, the thin modules are compiled against stubs of them.
#if os(Linux)
    let stubs = ["Security", "UIKit", "UserNotifications"]
#else
    let stubs: [String] = []
#endif
let frameworks = stubs.map { Target.Dependency(stringLiteral: $0) }

let package = Package(
    name: "herald",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [
        .library(name: "Herald", targets: ["Herald"]),
        .library(name: "HeraldNotificationService", targets: ["HeraldNotificationService"]),
    ],
    targets: [
        .target(name: "HeraldCore", path: "\(kit)/Sources/HeraldCore"),
        .target(name: "Herald", dependencies: ["HeraldCore"] + frameworks, path: "\(kit)/Sources/Herald"),
        .target(
            name: "HeraldNotificationService", dependencies: ["HeraldCore"] + frameworks,
            path: "\(kit)/Sources/HeraldNotificationService"),
        .target(
            name: "HeraldExample", dependencies: ["Herald", "HeraldNotificationService"], path: "examples/swift",
            exclude: ["README.md", "project.yml"] + (stubs.isEmpty ? [] : ["ExampleApp.swift"])),
        .testTarget(name: "HeraldCoreTests", dependencies: ["HeraldCore"], path: "\(kit)/Tests/HeraldCoreTests"),
    ] + stubs.map { .target(name: $0, path: "\(kit)/Stubs/\($0)") },
    swiftLanguageModes: [.v6]
)
