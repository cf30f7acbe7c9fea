import Foundation
import HeraldCore
import UIKit
import UserNotifications

/// Connects an app to Herald: registers the device at every start, and reports opens, presses and dismissals. Use it, or a subclass of it, as the app
/// delegate: `@UIApplicationDelegateAdaptor(HeraldAppDelegate.self) var delegate`.
@MainActor
open class HeraldAppDelegate: UIResponder, UIApplicationDelegate {
    private let responses = NotificationResponses()

    /// The device. Override it to use a client of your own.
    open var herald: HeraldClient { .shared }

    /// Shows what a notification links to: the `link_to` of the notification or of the pressed button. Default: opens an `https` URL, and one
    /// of a scheme that the app's Info.plist declares.
    open func open(link: String, of push: HeraldPush) {
        guard let url = HeraldPush.url(link: link, infoDictionary: Bundle.main.infoDictionary) else { return }
        UIApplication.shared.open(url)
    }

    /// Shows no permission prompt: call ``askForPermission()`` when people know what they will get.
    open func application(
        _ application: UIApplication, didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]? = nil
    ) -> Bool {
        responses.herald = herald
        responses.open = { [weak self] link, push in self?.open(link: link, of: push) }
        // Before the launch ends, or the open that started the app is lost.
        UNUserNotificationCenter.current().delegate = responses
        application.registerForRemoteNotifications()
        let herald = herald
        _ = NotificationCenter.default.addObserver(
            forName: UIApplication.didBecomeActiveNotification, object: nil, queue: .main
        ) { _ in Task { await herald.settle() } }
        return true
    }

    open func application(
        _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data
    ) {
        let herald = herald
        Task { await herald.register(token: deviceToken) }
    }

    /// Asks once; later calls return the answer.
    @discardableResult
    public static func askForPermission() async -> Bool {
        (try? await UNUserNotificationCenter.current().requestAuthorization(options: [.alert, .badge, .sound])) ?? false
    }
}

/// The delegate of the notification center. The system calls it on a thread of its own, and wants its answers on the main thread.
private final class NotificationResponses: NSObject, UNUserNotificationCenterDelegate, @unchecked Sendable {
    /// Set on the main thread, before the launch ends.
    @MainActor var herald: HeraldClient?
    @MainActor var open: (String, HeraldPush) -> Void = { _, _ in }

    private struct Completion: @unchecked Sendable { let call: () -> Void }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping (UNNotificationPresentationOptions) -> Void
    ) {
        completionHandler([.banner, .list, .badge, .sound])
    }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping () -> Void
    ) {
        guard let push = HeraldPush(userInfo: response.notification.request.content.userInfo) else { return completionHandler() }
        let action = HeraldResponse(action: response.actionIdentifier, push: push)
        let completion = Completion(call: completionHandler)
        Task { @MainActor in
            if let link = action.link { open(link, push) }
            // A button may start the app in the background, which ends with this call.
            await herald?.report(action, push)
            completion.call()
        }
    }
}
