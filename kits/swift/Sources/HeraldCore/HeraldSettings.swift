import Foundation

/// Which Herald an app talks to, and what its device tells about itself.
public struct HeraldSettings: Sendable {
    /// The host of APNs whose tokens a build gets.
    public enum Environment: String, Codable, Sendable { case production, sandbox }

    public var gateway: URL
    /// The project's id, `prj_…`.
    public var project: String
    public var environment: Environment
    /// The app's bundle id, for projects with several apps. Nil: the one of the project's settings for APNs.
    public var app: String?
    /// Stored with the device, for targets such as `metadata:plan=pro`. Herald ignores values that the project protects.
    public var metadata: [String: JSONValue]
    /// More identifiers. The kit always sends `current_locale` and `current_time_zone`.
    public var identifiers: [String: JSONValue]
    /// What this build can do: `receipts` and `buttons` need the notification service extension.
    public var capabilities: [String]

    public init(
        gateway: URL, project: String, environment: Environment = .production, app: String? = nil,
        metadata: [String: JSONValue] = [:], identifiers: [String: JSONValue] = [:], capabilities: [String] = []
    ) {
        self.gateway = gateway
        self.project = project
        self.environment = environment
        self.app = app
        self.metadata = metadata
        self.identifiers = identifiers
        self.capabilities = capabilities
    }

    /// From `HeraldGateway` and `HeraldProject` of an Info.plist. Nil if one of them is missing or no URL.
    public init?(infoDictionary: [String: Any]?) {
        guard let gateway = Self.gateway(infoDictionary: infoDictionary),
            let project = infoDictionary?["HeraldProject"] as? String, project.hasPrefix("prj_")
        else { return nil }
        self.init(gateway: gateway, project: project)
    }

    /// From `HeraldGateway` of an Info.plist: an `http` or `https` URL with a host.
    public static func gateway(infoDictionary: [String: Any]?) -> URL? {
        guard let text = infoDictionary?["HeraldGateway"] as? String, let url = URL(string: text),
            ["http", "https"].contains(url.scheme), url.host?.isEmpty == false
        else { return nil }
        return url
    }

    /// The environment that a build's `embedded.mobileprovision` names. Builds of the App Store have no such file.
    public static func environment(provisioningProfile: Data?) -> Environment {
        // A signed container around a property list in plain text.
        let text = provisioningProfile.map { String(decoding: $0, as: UTF8.self) } ?? ""
        let development = #"<key>aps-environment</key>\s*<string>development</string>"#
        return text.range(of: development, options: .regularExpression) == nil ? .production : .sandbox
    }

    /// What the app extensions with these Info.plists can do: Herald asks a device for receipts, and sends it buttons, only if a notification
    /// service extension has Herald's address.
    public static func capabilities(extensions: [[String: Any]]) -> [String] {
        let hasService = extensions.contains { info in
            let point = (info["NSExtension"] as? [String: Any])?["NSExtensionPointIdentifier"] as? String
            return point == "com.apple.usernotifications.service" && gateway(infoDictionary: info) != nil
        }
        return hasService ? ["buttons", "receipts"] : []
    }
}
