import Foundation
@_exported import HeraldCore
import UserNotifications

extension HeraldClient {
    /// This app's device, with `HeraldGateway` and `HeraldProject` of its Info.plist. To set metadata, make a client of your own with
    /// ``HeraldSettings/ofApp()`` and ``ofApp(_:onChange:)``, and give it to ``HeraldAppDelegate``.
    public static let shared = ofApp(.ofApp())

    /// One client an app: two would overwrite each other's storage.
    /// - Parameter onChange: called after each attempt to send.
    public static func ofApp(
        _ settings: HeraldSettings, onChange: @escaping @Sendable (HeraldStatus) -> Void = { _ in }
    ) -> HeraldClient {
        HeraldClient(
            settings: settings, store: Keychain(), reports: FileStore(name: "herald-reports.json"),
            removeShown: { UNUserNotificationCenter.current().removeAllDeliveredNotifications() }, onChange: onChange)
    }

    /// Registers the app's own categories, and keeps those of Herald's buttons: the system's call replaces all.
    public static func setCategories(_ own: Set<UNNotificationCategory>) async {
        let center = UNUserNotificationCenter.current()
        let heralds = await center.notificationCategories().filter { HeraldCategory.isHeralds($0.identifier) }
        center.setNotificationCategories(own.union(heralds))
    }
}

extension HeraldSettings {
    /// What this app's bundle says.
    public static func ofApp() -> HeraldSettings {
        guard var settings = HeraldSettings(infoDictionary: Bundle.main.infoDictionary) else {
            preconditionFailure("Info.plist: HeraldGateway must be an http or https URL, HeraldProject a project's id (prj_…)")
        }
        settings.app = Bundle.main.bundleIdentifier
        settings.capabilities = capabilities(extensions: extensions())
        #if targetEnvironment(simulator)
            settings.environment = .sandbox
        #else
            let profile = Bundle.main.url(forResource: "embedded", withExtension: "mobileprovision")
            settings.environment = environment(provisioningProfile: profile.flatMap { try? Data(contentsOf: $0) })
        #endif
        return settings
    }

    private static func extensions() -> [[String: Any]] {
        let folder = Bundle.main.builtInPlugInsURL
        let found = folder.flatMap { try? FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil) }
        return (found ?? []).compactMap { Bundle(url: $0)?.infoDictionary }
    }
}
