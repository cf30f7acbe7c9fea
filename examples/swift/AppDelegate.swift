import Foundation
import Herald
import UIKit

/// Shows inside the app what its notifications link to.
final class AppDelegate: HeraldAppDelegate {
    /// The path that the app shows, such as `/orders/42`.
    static let path = AsyncStream.makeStream(of: String.self)

    override func application(
        _ application: UIApplication, didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]? = nil
    ) -> Bool {
        // Also when a push that started a card launches the app in the background.
        if #available(iOS 16.2, *) { Orders.follow() }
        return super.application(application, didFinishLaunchingWithOptions: launchOptions)
    }

    override func open(link: String, of push: HeraldPush) {
        guard link.hasPrefix("/") else { return super.open(link: link, of: push) }
        Self.path.continuation.yield(link)
    }
}

/// What the example's screen does.
enum Device {
    static func logIn(_ userToken: String) async -> HeraldStatus { await HeraldClient.shared.login(userToken: userToken) }
    static func logOut() async -> HeraldStatus { await HeraldClient.shared.logout() }
    static func set(_ topic: String, subscribed: Bool) async -> HeraldStatus {
        let topics = HeraldClient.shared.topics
        return subscribed ? await topics.add(topic) : await topics.remove(topic)
    }

    /// The status in words.
    static func words(_ status: HeraldStatus) -> String {
        if let problem = status.problem { return problem.message }
        if status.pending { return "Waiting for Herald" }
        guard let device = status.device else { return "Not registered yet" }
        return "Registered as \(device)" + (status.user.map { ", logged in as \($0)" } ?? "")
    }
}
