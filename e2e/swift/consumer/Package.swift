// swift-tools-version: 6.0
// A package that has nothing but Herald's: it compiles what the page tells apps to write.

import PackageDescription

let package = Package(
    name: "consumer",
    platforms: [.iOS(.v15), .macOS(.v12)],
    dependencies: [.package(name: "herald", path: "../../..")],
    targets: [
        .target(
            name: "App",
            dependencies: ["Herald", "HeraldLiveActivities", "HeraldNotificationService"].map { .product(name: $0, package: "herald") })
    ]
)
