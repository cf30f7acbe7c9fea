// The blocks of docs/how-to/connect-swift.md: a test compares them.

import Foundation
import Herald
import HeraldLiveActivities
import HeraldNotificationService

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif
#if canImport(SwiftUI)
    import SwiftUI

    struct ContentView: View { var body: some View { Text("Hello") } }

    @main struct ExampleApp: App {
        @UIApplicationDelegateAdaptor(HeraldAppDelegate.self) var delegate
        var body: some Scene { WindowGroup { ContentView() } }
    }
#endif

final class NotificationService: HeraldNotificationService {}

struct Credentials { let token: Data }

@MainActor func connect(_ credentials: Credentials, token: String) async {
    await HeraldAppDelegate.askForPermission()

    await HeraldClient.shared.tokens.set(credentials.token, for: "voip")   // PushKit's
    await HeraldClient.shared.tokens.remove("voip")

    await HeraldClient.shared.login(userToken: token)   // a JWT from your backend

    await HeraldClient.shared.logout()

    await HeraldClient.shared.topics.add("news")
    await HeraldClient.shared.topics.remove("news")
}

struct Choice: Identifiable { let id: String, title: String, on: Bool }

@MainActor func choose() async -> [Choice] {
    let choices = await HeraldClient.shared.preferences.get()   // each with kind, title, on, critical, setBy
    await HeraldClient.shared.preferences.set(["offers": false])   // the others stay
    return choices.kinds.map { Choice(id: $0.kind, title: $0.title, on: $0.on) }
}

@MainActor func call(gateway: URL) async -> URLRequest? {
    guard let device = await HeraldClient.shared.status.device, let credential = await HeraldClient.shared.credential else { return nil }
    var request = URLRequest(url: gateway.appendingPathComponent("api/v1/devices/\(device)/preferences"))
    request.setValue("Bearer \(credential)", forHTTPHeaderField: "Authorization")
    return request
}

@MainActor final class Router { func show(_ link: String, _ data: [String: String]) {} }
@MainActor let router = Router()

final class AppDelegate: HeraldAppDelegate {
    override func open(link: String, of push: HeraldPush) { router.show(link, push.data) }
}
