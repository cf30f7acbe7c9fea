import Foundation
import Testing

@testable import HeraldCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A running Herald, as `npm run test:swift` describes it in `HERALD_TEST`.
private struct System: Decodable {
    let gateway: URL
    let project: String
    /// The project's token: the app's backend.
    let token: String
    /// The simulator of APNs.
    let simulator: URL
    /// Of the user `u-swift`, each issued after the one before.
    let userTokens: [String]
    /// Sends every request to another host, which notes what comes.
    let redirecting: URL

    static let running = ProcessInfo.processInfo.environment["HERALD_TEST"].flatMap {
        try? JSONDecoder().decode(System.self, from: Data($0.utf8))
    }

    /// Calls a route as the backend. Returns the answer's JSON, empty for none.
    @discardableResult
    func backend(_ method: String, _ path: String, _ body: [String: Any]? = nil) async throws -> [String: Any] {
        var request = URLRequest(url: URL(string: "\(gateway.absoluteString)/api/v1\(path)")!)
        request.httpMethod = method
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        if let body {
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = try JSONSerialization.data(withJSONObject: body)
        }
        return try await json(request)
    }

    /// Sends a notification, and returns what APNs gets for a device token.
    func push(_ notification: [String: Any], to deviceToken: Data) async throws -> HeraldPush {
        let answer = try await backend("POST", "/notifications", ["notification": notification])
        let id = try #require((answer["data"] as? [String: Any])?["id"] as? String)
        var found: HeraldPush?
        try await eventually("APNs gets \(id)") {
            let pushes = try await json(URLRequest(url: URL(string: "\(simulator.absoluteString)/pushes?token=\(hexadecimal(deviceToken))")!))
            for push in pushes["data"] as? [[String: Any]] ?? [] {
                guard let payload = push["payload"] as? [String: Any], payload["notification_id"] as? String == id else { continue }
                found = HeraldPush(userInfo: payload)
            }
            return found != nil
        }
        return try #require(found)
    }

    func counts(_ push: HeraldPush) async throws -> [String: Any] {
        let answer = try await backend("GET", "/notifications/\(push.notification)")
        return try #require((answer["data"] as? [String: Any])?["counts"] as? [String: Any])
    }

    /// The tokens of an app on a phone, by push type.
    func phone(activities: [String]) async throws -> [String: String] {
        var request = URLRequest(url: URL(string: "\(simulator.absoluteString)/apns/phones")!)
        request.httpMethod = "POST"
        request.httpBody = try JSONSerialization.data(withJSONObject: ["app": "com.example.e2e", "activities": activities])
        return try #require(try await json(request)["tokens"] as? [String: String])
    }

    /// The card that a push to the token started, once what it has shown is as wanted.
    func card(_ startToken: String, _ wanted: ([[String: Any]]) -> Bool) async throws -> [String: Any] {
        var found: [String: Any]?
        try await eventually("the card shows the state") {
            let url = URL(string: "\(simulator.absoluteString)/apns/instances?token=\(startToken)")!
            let card = (try await json(URLRequest(url: url))["data"] as? [[String: Any]])?.first
            guard let card, wanted(card["shown"] as? [[String: Any]] ?? []) else { return false }
            found = card
            return true
        }
        return try #require(found)
    }

    func device(_ id: String) async throws -> [String: Any] {
        try #require(try await backend("GET", "/devices/\(id)")["data"] as? [String: Any])
    }

    private func json(_ request: URLRequest) async throws -> [String: Any] {
        let (data, _) = try await URLSession.shared.data(for: request)
        return (try? JSONSerialization.jsonObject(with: data)) as? [String: Any] ?? [:]
    }
}

private func bytes(_ hexadecimal: String) -> Data {
    let digits = Array(hexadecimal)
    return Data(stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0..<$0 + 2]), radix: 16) })
}

private func newDeviceToken() -> Data { Data([0] + (0..<31).map { _ in UInt8.random(in: 0...255) }) }

/// An app installation on a phone.
private struct Phone {
    let system: System
    let network = Network()
    let store = MemoryStore()
    let reports = MemoryStore()
    let clock = TestClock()

    func app() -> HeraldClient {
        HeraldClient(
            settings: HeraldSettings(
                gateway: system.gateway, project: system.project, identifiers: ["app_version": "1.2"],
                capabilities: ["buttons", "receipts"]),
            store: store, reports: reports, transport: network, clock: clock)
    }
}

@Suite(.serialized, .enabled(if: System.running != nil))
struct EndToEnd {
    private let phone: Phone
    private var system: System { phone.system }

    init() throws { phone = Phone(system: try #require(System.running)) }

    @Test func registersSubscribesLogsInAndReportsTheOpen() async throws {
        let token = newDeviceToken()
        let app = phone.app()
        let device = try #require(await app.register(token: token).device)
        #expect(await app.topics.add("news").topics == ["news"])
        #expect(await app.login(userToken: system.userTokens[0]) ==
            HeraldStatus(device: device, user: "u-swift", topics: ["news"], pending: false, problem: nil))
        let known = try await system.device(device)
        #expect(known["token"] as? String == hexadecimal(token))
        #expect(known["topics"] as? [String] == ["news"])
        let identifiers = try #require(known["identifiers"] as? [String: Any])
        #expect(identifiers["app_version"] as? String == "1.2")
        #expect(identifiers["current_time_zone"] as? String == TimeZone.current.identifier)

        let push = try await system.push(
            ["title": "Hello", "link_to": "/orders/42", "data": ["order": "42"], "targets": ["user:u-swift"]], to: token)
        #expect(push.linkTo == "/orders/42" && push.data == ["order": "42"])
        #expect(await app.open(push).problem == nil)
        try await eventually("one open") { try await system.counts(push)["opened"] as? Int == 1 }

        #expect(await app.topics.remove("news").topics == [])
        #expect(await app.logout().user == nil)
        let after = try await system.device(device)
        #expect(after["user_id"] is NSNull && after["topics"] as? [String] == [])
    }

    @Test func aDeviceWithoutAUserSwitchesAKindOff() async throws {
        let app = phone.app()
        let device = try #require(await app.register(token: newDeviceToken()).device)
        let kinds = await app.preferences.get().kinds
        #expect(kinds.map(\.kind) == ["offers", "security"] && kinds.map(\.critical) == [false, true])
        #expect(kinds[0].title == "Offers" && kinds[0].on && kinds[0].setBy == "default")
        #expect(await app.preferences.set(["offers": false]).kinds.first?.on == false)
        let refused = await app.preferences.set(["security": false, "no-such": true])
        #expect(refused.problem?.status == 422 && refused.kinds.isEmpty)
        #expect(refused.problem?.message.contains("preferences.kinds.no-such: the project declares no such kind") == true)
        #expect(await app.preferences.set([:]).kinds.first?.setBy == "device")
        await phone.network.goOffline()
        #expect(await app.preferences.set(["offers": true]).problem?.slug == "offline")
        #expect(await app.status.pending == false)
        await phone.network.answer(nil)

        // What the app calls by itself.
        var request = URLRequest(url: URL(string: "\(system.gateway.absoluteString)/api/v1/devices/\(device)/preferences")!)
        request.setValue("Bearer \(try #require(await app.credential))", forHTTPHeaderField: "Authorization")
        let own = try await URLSession.shared.data(for: request).0
        #expect(String(decoding: own, as: UTF8.self).contains(#""on":false"#))

        // The backend deletes the device: the kit registers it again, and the new one has chosen nothing.
        try await system.backend("DELETE", "/devices/\(device)")
        #expect(await app.preferences.get().kinds.first?.on == true)
        let after = await app.status.device
        #expect(after != nil && after != device)
    }

    @Test func whatHappensOfflineReachesHeraldLater() async throws {
        let token = newDeviceToken()
        await phone.network.goOffline()
        try await startWithoutANetwork(token)
        await phone.network.answer(nil)
        let device = try await startAgain()
        let push = try await system.push(["title": "Hello", "receipts": true, "targets": ["device:\(device)"]], to: token)
        await phone.network.goOffline()
        try await useWithoutANetwork(push)
        let opened = try await system.counts(push)["opened"] as? Int
        #expect(opened == 0)

        phone.clock.advance(90)
        await phone.network.answer(nil)
        let last = await phone.app().settle()
        #expect(last == HeraldStatus(device: device, user: nil, topics: [], pending: false, problem: nil))
        let saidWhen = await phone.network.bodies.filter { $0.contains(#""ago":90"#) }.count
        #expect(saidWhen == 2)
        try await eventually("one open") { try await system.counts(push)["opened"] as? Int == 1 }
        try await eventually("one dismissal") { try await system.counts(push)["dismissed"] as? Int == 1 }
    }

    /// `npm run test:swift` then looks whether the other host got anything.
    @Test func keepsWhatARedirectWouldCarryAway() async throws {
        let app = HeraldClient(
            settings: HeraldSettings(gateway: system.redirecting, project: system.project), store: phone.store, reports: phone.reports,
            transport: phone.network, clock: phone.clock)
        let status = await app.register(token: newDeviceToken())
        #expect(status.problem?.status == 307 && status.problem?.retry == true && status.pending)
        let opened = await app.open(try #require(HeraldPush(userInfo: userInfo())))
        #expect(opened.problem?.status == 307 && opened.pending)
    }

    /// Each of these is a process of its own, which has ended when it returns: two that live would overwrite each other's storage.
    private func startWithoutANetwork(_ token: Data) async throws {
        let app = phone.app()
        let slug = await app.register(token: token).problem?.slug
        #expect(slug == "offline")
        await app.topics.add("news")
    }

    private func startAgain() async throws -> String {
        let status = await phone.app().settle()
        #expect(status.topics == ["news"] && !status.pending)
        return try #require(status.device)
    }

    private func useWithoutANetwork(_ push: HeraldPush) async throws {
        let app = phone.app()
        await app.open(push)
        await app.dismissed(push)
        let status = await app.topics.remove("news")
        #expect(status.pending && status.problem?.slug == "offline")
    }

    @Test func keepsATokenForCalls() async throws {
        let app = phone.app()
        let device = try #require(await app.register(token: newDeviceToken()).device)
        let calls = newDeviceToken()
        #expect(await app.tokens.set(calls, for: "voip").problem == nil)
        #expect(await app.tokens.set(newDeviceToken(), for: "controls/garage-door").problem == nil)
        #expect(await app.tokens.remove("controls/garage-door").problem == nil)
        let tokens = try #require(try await system.device(device)["tokens"] as? [[String: Any]])
        #expect(tokens.map { $0["type"] as? String } == ["voip"])
        #expect(tokens.first?["token"] as? String == hexadecimal(calls))
    }

    @Test func anotherDeviceTokenKeepsTheDevice() async throws {
        let app = phone.app()
        let device = await app.register(token: newDeviceToken()).device
        await app.topics.add("news")
        let next = newDeviceToken()
        #expect(await app.register(token: next) == HeraldStatus(device: device, user: nil, topics: ["news"], pending: false, problem: nil))
        #expect(try await system.device(try #require(device))["token"] as? String == hexadecimal(next))
    }

    @Test func aDeletedDeviceRegistersAgainWithItsUserAndTopics() async throws {
        let app = phone.app()
        let device = try #require(await app.register(token: newDeviceToken()).device)
        await app.login(userToken: system.userTokens[1])
        await app.topics.add("news")
        try await system.backend("DELETE", "/devices/\(device)")
        let refused = await app.topics.add("no-such-topic")
        #expect(refused.problem?.slug == "topic-not-found")
        let status = await app.login(userToken: system.userTokens[2])
        #expect(status.device != device && status.user == "u-swift" && status.topics == ["news"] && !status.pending)
        #expect(try await system.device(try #require(status.device))["user_id"] as? String == "u-swift")
    }

    @Test func theExtensionReportsTheReceiptAndTheAppThePress() async throws {
        let token = newDeviceToken()
        let device = try #require(await phone.app().register(token: token).device)
        let buttons = [
            ["id": "track", "title": "Track", "link_to": "/track"], ["id": "later", "title": "Later", "opens": false],
        ] as [[String: Any]]
        let push = try await system.push(
            ["title": "Hello", "receipts": true, "buttons": buttons, "targets": ["device:\(device)"]], to: token)
        #expect(push.asksReceipt)
        #expect(push.buttons.map(\.id) == ["track", "later"] && push.buttons.map(\.opens) == [true, false])
        let categories = Categories()
        let service = NotificationService(
            reports: ReportSender(gateway: system.gateway, store: MemoryStore()), categories: categories,
            categoryStore: MemoryStore())
        _ = await service.prepare(push)
        #expect(await categories.registered.first?.hasPrefix("herald.") == true)
        try await eventually("one receipt") { try await system.counts(push)["received"] as? Int == 1 }
        #expect(try await system.counts(push)["receipts_asked"] as? Int == 1)
        await phone.app().report(HeraldResponse(action: "later", push: push), push)
        try await eventually("one press") {
            let counts = try await system.counts(push)
            return counts["opened"] as? Int == 1 && (counts["buttons"] as? [String: Int])?["later"] == 1
        }
        let plain = try await system.push(["title": "Hello", "targets": ["device:\(device)"]], to: token)
        #expect(!plain.asksReceipt && HeraldCategory(plain) == nil)
    }

    @Test func anImportedDeviceGetsItsCredentialFromTheBackend() async throws {
        let token = newDeviceToken()
        let entry = ["token": hexadecimal(token), "platform": "ios"]
        try await system.backend("PUT", "/devices", ["devices": [entry]])
        let app = phone.app()
        let status = await app.register(token: token)
        #expect(status.problem?.slug == "no-credential")
        let issued = try await system.backend("POST", "/devices", ["device": entry])
        let device = try #require((issued["data"] as? [String: Any])?["id"] as? String)
        #expect(status.device == device)
        #expect(await app.adopt(device: device, credential: try #require(issued["credential"] as? String)).problem == nil)
        #expect(await app.topics.add("news").topics == ["news"])
    }

    @Test func anImportedDeviceGetsItsCredentialWhenItsUserLogsIn() async throws {
        let token = newDeviceToken()
        let entry = ["token": hexadecimal(token), "platform": "ios", "user_id": "u-swift"]
        try await system.backend("PUT", "/devices", ["devices": [entry]])
        let app = phone.app()
        await app.register(token: token)
        let status = await app.login(userToken: system.userTokens[3])
        #expect(status.user == "u-swift" && status.problem == nil && !status.pending)
        #expect(await app.topics.add("news").topics == ["news"])
    }

    @Test func tellsWhatHeraldRefuses() async throws {
        let app = phone.app()
        await app.register(token: newDeviceToken())
        #expect(await app.login(userToken: "e30.eyJzdWIiOiJ1LTEiLCJpYXQiOjF9.forged").problem?.slug == "user-token-invalid")
        let forged = try #require(HeraldPush(userInfo: userInfo("ntf_06bq4ghm31tz5d2ns8y7k9w0ac", more: ["project_id": system.project])))
        let status = await app.open(forged)
        #expect(status.problem?.slug == "open-token-invalid" && !status.pending)
    }

    @Test func startsFollowsAndOpensALiveActivity() async throws {
        struct ContentState: Codable, Equatable, Sendable { let n: Int }
        let tokens = try await system.phone(activities: ["OrderAttributes"])
        let app = phone.app()
        let deviceToken = bytes(try #require(tokens["alert"]))
        let device = try #require(await app.register(token: deviceToken).device)
        let startToken = try #require(tokens["liveactivity/OrderAttributes"])
        await app.activities.setStartToken(bytes(startToken), attributesType: "OrderAttributes")

        let id = "swift-\(device.suffix(12))"
        try await system.backend("PUT", "/activities/\(id)", ["activity": [
            "attributes_type": "OrderAttributes", "attributes": [String: Any](), "content_state": ["n": 1],
            "targets": [device], "alert": ["title": "Order", "body": "Packed"],
        ] as [String: Any]])
        var card = try await system.card(startToken) { _ in true }
        let attributes = try #require(card["attributes"] as? [String: Any])
        let added = try #require(attributes["herald"])
        let herald = try JSONDecoder().decode(HeraldActivity.self, from: JSONSerialization.data(withJSONObject: added))
        #expect(herald.activity == id)

        let updateToken = try #require(card["token"] as? String)
        await app.activities.setToken(bytes(updateToken), of: id)
        try await system.backend("PATCH", "/activities/\(id)", ["activity": ["content_state": ["n": 2]]])
        card = try await system.card(startToken) { shown in (shown.last?["contentState"] as? [String: Any])?["n"] as? Int == 2 }
        let newest = try #require(await app.activities.state(of: id, as: ContentState.self))
        #expect(newest.version == 2 && !newest.isEnded && newest.contentState == ContentState(n: 2))
        #expect(await app.activities.state(of: "unknown", as: ContentState.self) == nil)

        #expect(await app.activities.open(herald).problem == nil)
        try await eventually("the start is opened") {
            try await system.counts(HeraldPush(herald))["opened"] as? Int == 1
        }
        await app.activities.end(id)
        let left = (try await system.device(device)["tokens"] as? [[String: Any]] ?? []).compactMap { $0["type"] as? String }
        #expect(left == ["liveactivity"])
    }
}
