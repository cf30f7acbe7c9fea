import Foundation

/// A kind of notifications that the project has declared, and whether the device gets it.
public struct HeraldKindChoice: Equatable, Sendable, Decodable {
    public let kind: String
    /// What people read beside its switch.
    public let title: String
    public let on: Bool
    /// It cannot be switched off.
    public let critical: Bool
    /// Whose choice ``on`` is: `device`, `user` or `default`.
    public let setBy: String

    private enum CodingKeys: String, CodingKey {
        case kind, title, on, critical
        case setBy = "set_by"
    }
}

/// No kinds beside a problem.
public struct HeraldKindChoices: Equatable, Sendable {
    public var kinds: [HeraldKindChoice] = []
    public var problem: HeraldProblem?
}

/// Which kinds of notifications the device gets. Call it as `herald.preferences`. Nothing is kept while Herald cannot be reached:
/// ``HeraldKindChoices/problem`` says so.
public struct HeraldPreferences: Sendable {
    let client: HeraldClient

    public func get() async -> HeraldKindChoices { await client.choices([:]) }

    /// Switches kinds on or off, such as `["offers": false]`; the others stay.
    @discardableResult
    public func set(_ kinds: [String: Bool]) async -> HeraldKindChoices { await client.choices(kinds) }
}

extension HeraldClient {
    /// Which kinds of notifications the device gets.
    public nonisolated var preferences: HeraldPreferences { HeraldPreferences(client: self) }

    /// Authorizes calls of this device at Herald's API, as `Bearer`: keep it on the phone, because who has it acts for the device. Nil until
    /// Herald has registered the device. ``status`` has the device's id.
    public var credential: String? { state?.credential }

    /// One at a time: each replaces what it has read. What is pending goes first, such as the registration.
    func choices(_ changed: [String: Bool]) async -> HeraldKindChoices {
        let before = choosing
        let task = Task {
            _ = await before?.value
            await settle()
            return await answeredChoices(changed)
        }
        choosing = task
        return await task.value
    }

    private func answeredChoices(_ changed: [String: Bool], again: Bool = false) async -> HeraldKindChoices {
        do {
            return HeraldKindChoices(kinds: try await ask(changed))
        } catch {
            guard error.isUnknownDevice, !again else { return HeraldKindChoices(problem: error) }
            // It registers as a new device.
            update { $0.forgetDevice() }
            await settle()
            return await answeredChoices(changed, again: true)
        }
    }

    private func ask(_ changed: [String: Bool]) async throws(HeraldProblem) -> [HeraldKindChoice] {
        guard let state, let device = state.device, let credential = state.credential else {
            throw HeraldProblem(
                slug: "not-registered", message: "Herald does not know the device yet: wait until the status names it", retry: false)
        }
        let path = ["devices", device, "preferences"]
        let kinds = try await choices("GET", path, nil, credential)
        if changed.isEmpty { return kinds }
        let own = kinds.filter { $0.setBy == "device" }.map { ($0.kind, $0.on) }
        let all = Dictionary(uniqueKeysWithValues: own).merging(changed) { $1 }
        return try await choices("PUT", path, PreferencesBody(preferences: .init(kinds: all)), credential)
    }

    private func choices(
        _ method: String, _ path: [String], _ body: PreferencesBody?, _ credential: String
    ) async throws(HeraldProblem) -> [HeraldKindChoice] {
        let now = clock.now()
        if let backoff = state?.backoff, !backoff.maySend(at: now) {
            let seconds = Int(backoff.remaining(at: now).rounded(.up))
            throw HeraldProblem(slug: "retry-later", message: "Herald asked to wait: try again in \(seconds) s", retry: true)
        }
        do {
            let data = try await gateway.call(method, path, body: body, credential: credential)
            return try gateway.decode(PreferencesAnswer.self, data).data.kinds
        } catch {
            if error.retryAfter != nil {
                update { [random = clock.random()] in _ = $0.backoff.failed(error, at: now, random: random) }
            }
            throw error
        }
    }
}

/// `PUT /devices/{id}/preferences`.
private struct PreferencesBody: Encodable, Sendable {
    struct Preferences: Encodable, Sendable { let kinds: [String: Bool] }

    let preferences: Preferences
}

private struct PreferencesAnswer: Decodable, Sendable {
    struct Preferences: Decodable, Sendable { let kinds: [HeraldKindChoice] }

    let data: Preferences
}
