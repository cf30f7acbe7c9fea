// Not compiled here. Connects `Herald.swift` to an app. The target needs the capability "Push Notifications".

import UIKit
import UserNotifications

final class AppDelegate: NSObject, UIApplicationDelegate, UNUserNotificationCenterDelegate {
    func application(
        _ application: UIApplication, didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]? = nil
    ) -> Bool {
        // Before the end of the launch: else the open that started the app is lost.
        UNUserNotificationCenter.current().delegate = self
        // Asks the person for nothing.
        application.registerForRemoteNotifications()
        return true
    }

    /// Call it when the person has seen what notifications are for.
    static func askForPermission() async {
        _ = try? await UNUserNotificationCenter.current().requestAuthorization(options: [.alert, .badge, .sound])
    }

    func application(_ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken token: Data) {
        Task { await Herald.shared.register(deviceToken: token) }
    }

    func applicationDidBecomeActive(_ application: UIApplication) {
        Task { await Herald.shared.settle() }
    }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions {
        [.banner, .list, .sound]
    }

    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
        guard response.actionIdentifier != UNNotificationDismissActionIdentifier else { return }
        let userInfo = response.notification.request.content.userInfo
        await Herald.shared.opened(userInfo)
        if let link = userInfo["link_to"] as? String { await open(link) }
    }

    /// A path is a place in the app; the rest are addresses.
    @MainActor private func open(_ link: String) async {
        guard let url = URL(string: link, relativeTo: URL(string: "myapp://app/")) else { return }
        await UIApplication.shared.open(url)
    }
}
