// A device at Herald, for iOS 15 and later. Copy it: it needs only Foundation, Security and UserNotifications.
// Not compiled here. `AppDelegate.swift` beside it connects it to an app.
//
// Every call stores a change and then sends it to Herald. Changes that cannot be sent now are sent by the next call or by `settle()`, which
// you call when the app becomes active.

import Foundation
import Security
import UserNotifications

actor Herald {
    static let shared = Herald(gateway: URL(string: "https://push.example.com")!, project: "prj_…")

    private struct Open: Codable {
        let notification: String
        let project: String
        let token: String
    }

    private enum Topic: String, Codable { case subscribed, add, remove }

    private struct State: Codable {
        var pushToken: String?
        /// Whether the device must register.
        var due = false
        /// The push token that was last registered.
        var registered: String?
        var device: String?
        var credential: String?
        /// The user token of a pending login, and whether a log-out is pending.
        var userToken: String?
        var loggingOut = false
        var topics: [String: Topic] = [:]
        var opens: [Open] = []
    }

    /// Herald refused the request, and would refuse a retry too.
    struct Refused: Error {
        let status: Int
        let errors: [String]
    }

    private let gateway: URL
    private let project: String
    private var isSyncing = false
    private var isDue = false
    private var state: State { didSet { Keychain.write((try? JSONEncoder().encode(state)) ?? Data()) } }

    init(gateway: URL, project: String) {
        self.gateway = gateway
        self.project = project
        state = Keychain.read().flatMap { try? JSONDecoder().decode(State.self, from: $0) } ?? State()
    }

    /// Call it at every start, in `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`.
    func register(deviceToken: Data) async {
        state.pushToken = deviceToken.map { String(format: "%02x", $0) }.joined()
        state.due = true
        await settle()
    }

    /// `userToken`: a JWT from your backend.
    func login(userToken: String) async {
        state.userToken = userToken
        await settle()
    }

    /// Removes the shown notifications. Herald sends no more pushes to the user on this device.
    func logout() async {
        state.userToken = nil
        state.loggingOut = true
        UNUserNotificationCenter.current().removeAllDeliveredNotifications()
        await settle()
    }

    func subscribe(_ topic: String) async {
        state.topics[topic] = .add
        await settle()
    }

    func unsubscribe(_ topic: String) async {
        state.topics[topic] = .remove
        await settle()
    }

    /// Call it when the user opens a notification with this `userInfo`.
    func opened(_ userInfo: [AnyHashable: Any]) async {
        guard let notification = userInfo["notification_id"] as? String,
            let project = userInfo["project_id"] as? String,
            let token = userInfo["token"] as? String
        else { return }
        state.opens = (state.opens + [Open(notification: notification, project: project, token: token)]).suffix(100)
        await settle()
    }

    /// Sends pending changes to Herald.
    func settle() async {
        // Changes that are stored during a round are sent by the next round.
        isDue = true
        if isSyncing { return }
        isSyncing = true
        defer { isSyncing = false }
        while isDue {
            isDue = false
            await syncOnce()
        }
    }

    private func syncOnce() async {
        do {
            try await sync()
        } catch let refused as Refused where refused.status == 401 {
            // Herald no longer knows the device, so it registers as a new one.
            state.device = nil
            state.credential = nil
            state.due = true
            try? await sync()
        } catch {
            // A later call retries.
        }
    }

    private func sync() async throws {
        while let open = state.opens.first {
            try await attempt {
                try await self.call(
                    "PUT", "/notifications/\(open.notification)/open", ["project_id": open.project, "token": open.token])
            }
            state.opens.removeFirst()
        }
        if state.loggingOut {
            if let device = state.device {
                try await attempt { try await self.call("DELETE", "/devices/\(device)/user", credential: self.state.credential) }
            }
            state.loggingOut = false
        }
        if state.due, let pushToken = state.pushToken {
            var body: [String: Any] = [
                "project_id": project,
                "platform": "ios",
                "identifier": pushToken,
                "environment": environment,
                "identifiers": [
                    "current_locale": Locale.preferredLanguages.first ?? "en",
                    "current_time_zone": TimeZone.current.identifier,
                ],
            ]
            // With the credential this keeps the device.
            if let registered = state.registered, registered != pushToken { body["previous_identifier"] = registered }
            let answer = try await call("PUT", "/identification", body, credential: state.credential)
            state.device = (answer["data"] as? [String: Any])?["id"] as? String
            state.registered = pushToken
            state.due = state.pushToken != pushToken
            if let credential = answer["credential"] as? String {
                // A new device has no topics yet.
                state.credential = credential
                for (name, topic) in state.topics where topic == .subscribed { state.topics[name] = .add }
            }
        }
        guard let device = state.device, let credential = state.credential else { return }
        if let userToken = state.userToken {
            try await attempt {
                try await self.call("PATCH", "/devices/\(device)", ["device": ["user_token": userToken]], credential: credential)
            }
            if state.userToken == userToken { state.userToken = nil }
        }
        for (name, topic) in state.topics where topic != .subscribed {
            let path = "/devices/\(device)/topics/\(name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name)"
            if topic == .add {
                let taken = try await attempt { try await self.call("PUT", path, credential: credential) }
                state.topics[name] = taken ? .subscribed : nil
            } else {
                try await attempt { try await self.call("DELETE", path, credential: credential) }
                state.topics[name] = nil
            }
        }
    }

    /// False if Herald refuses the request.
    @discardableResult
    private func attempt(_ work: () async throws -> Void) async throws -> Bool {
        do {
            try await work()
            return true
        } catch let refused as Refused where refused.status != 401 {
            return false
        }
    }

    @discardableResult
    private func call(
        _ method: String, _ path: String, _ body: [String: Any]? = nil, credential: String? = nil
    ) async throws -> [String: Any] {
        var request = URLRequest(url: URL(string: gateway.absoluteString + "/api/v1" + path)!, timeoutInterval: 20)
        request.httpMethod = method
        if let credential { request.setValue("Bearer \(credential)", forHTTPHeaderField: "Authorization") }
        if let body {
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = try JSONSerialization.data(withJSONObject: body)
        }
        let (data, response) = try await URLSession.shared.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        let answer = (try? JSONSerialization.jsonObject(with: data)) as? [String: Any] ?? [:]
        if status == 429 || status >= 500 { throw URLError(.cannotConnectToHost) }
        if status >= 400 { throw Refused(status: status, errors: answer["errors"] as? [String] ?? []) }
        return answer
    }

    /// Apps that Xcode installs get tokens of APNs' sandbox.
    private var environment: String {
        #if DEBUG
            return "sandbox"
        #else
            return "production"
        #endif
    }
}

/// The credential acts for this device: it stays on the device and out of backups. Credential and device survive a reinstallation.
private enum Keychain {
    private static let query: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword,
        kSecAttrService as String: "herald",
    ]

    static func read() -> Data? {
        var found: AnyObject?
        let wanted = query.merging([kSecReturnData as String: true]) { $1 }
        return SecItemCopyMatching(wanted as CFDictionary, &found) == errSecSuccess ? found as? Data : nil
    }

    static func write(_ data: Data) {
        let value: [String: Any] = [
            kSecValueData as String: data,
            kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        if SecItemUpdate(query as CFDictionary, value as CFDictionary) == errSecItemNotFound {
            SecItemAdd(query.merging(value) { $1 } as CFDictionary, nil)
        }
    }
}
