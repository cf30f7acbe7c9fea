// swift-tools-version: 6.0
// Herald's kit for iPhone apps, kits/swift. The manifest stands here because Swift Package Manager looks for it at a repository's root.

import PackageDescription

let sources = "kits/swift/Sources"

let package = Package(
    name: "herald",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "HeraldCore", targets: ["HeraldCore"])],
    targets: [
        .target(name: "HeraldCore", path: "\(sources)/HeraldCore"),
        .testTarget(name: "HeraldCoreTests", dependencies: ["HeraldCore"], path: "kits/swift/Tests/HeraldCoreTests"),
    ],
    swiftLanguageModes: [.v6]
)
