// Not compiled here. Connects `Herald.swift` to an app. The target needs the capability "Push Notifications".

import UIKit
import UserNotifications

final class AppDelegate: NSObject, UIApplicationDelegate, UNUserNotificationCenterDelegate {
    func application(
        _ application: UIApplication, didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]? = nil
    ) -> Bool {
        // Set the delegate before the launch ends, or the open that started the app is lost.
        UNUserNotificationCenter.current().delegate = self
        // This shows no permission prompt.
        application.registerForRemoteNotifications()
        return true
    }

    /// Call it after the user has seen why your app sends notifications.
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

    /// A path leads to a screen of the app; other links are URLs.
    @MainActor private func open(_ link: String) async {
        guard let url = URL(string: link, relativeTo: URL(string: "myapp://app/")) else { return }
        await UIApplication.shared.open(url)
    }
}
