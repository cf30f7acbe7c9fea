import Foundation

/// What this installation wants and what Herald has confirmed. Stored before Herald is called, so that no change is lost. User tokens stay
/// in memory.
struct DeviceState: Codable, Equatable, Sendable {
    enum Topic: String, Codable, Sendable { case add, remove, subscribed }

    /// A token of a push type. Nil in `token`: to be deleted.
    struct PushTypeToken: Codable, Equatable, Sendable {
        var token: String?
        var isSent = false
    }

    /// One call to Herald.
    enum Step: Equatable, Sendable {
        case logOut, register
        case logIn(String)
        case add(String), remove(String)
        case putToken(type: String, String), deleteToken(type: String)
    }

    /// An unchanged device registers once a day.
    static let registersEvery: TimeInterval = 86_400

    var project: String
    /// The push token that iOS issued last, in hexadecimal.
    var pushToken: String?
    /// What was last registered, and when.
    var registered: Registration?
    var registeredAt: Date?
    var device: String?
    var credential: String?
    /// The user as Herald confirmed it, and the `iat` of the user token.
    var user: String?
    var userTokenIat: Int?
    /// A log-out that Herald has not confirmed yet.
    var isLoggingOut = false
    var topics: [String: Topic] = [:]
    /// By push type: `voip`, `controls/garage-door`.
    var tokens: [String: PushTypeToken]?
    var backoff = Backoff()

    init(project: String) { self.project = project }

    /// The call that comes next; nil if Herald has everything.
    /// - Parameter wanted: what this build registers, if it may.
    func nextStep(_ wanted: Registration?, userToken: String?, at now: Date) -> Step? {
        let isDevice = device != nil && credential != nil
        if isLoggingOut && isDevice { return .logOut }
        // A device without its credential is registered again by a proof of its user.
        if let wanted, !isRegistered(wanted, at: now) || (!isDevice && userToken != nil) { return .register }
        guard isDevice else { return nil }
        if let userToken { return .logIn(userToken) }
        if let (name, topic) = topics.sorted(by: { $0.key < $1.key }).first(where: { $0.value != .subscribed }) {
            return topic == .add ? .add(name) : .remove(name)
        }
        guard let (type, token) = tokens?.sorted(by: { $0.key < $1.key }).first(where: { !$0.value.isSent }) else { return nil }
        return token.token.map { .putToken(type: type, $0) } ?? .deleteToken(type: type)
    }

    private func isRegistered(_ wanted: Registration, at now: Date) -> Bool {
        guard device != nil, wanted == registered, let registeredAt else { return false }
        return (0..<Self.registersEvery).contains(now.timeIntervalSince(registeredAt))
    }

    mutating func apply(_ answer: IdentificationAnswer, to wanted: Registration, at now: Date) {
        let isNew = answer.data.id != device
        device = answer.data.id
        registered = wanted
        registeredAt = now
        if let issued = answer.credential { credential = issued } else if isNew { credential = nil }
        guard isNew else { return }
        user = nil
        userTokenIat = nil
        isLoggingOut = false
        // A new device has no topics and no other tokens yet.
        topics = topics.filter { $0.value != .remove }.mapValues { _ in .add }
        tokens = tokens?.filter { $0.value.token != nil }.mapValues { PushTypeToken(token: $0.token) }
    }

    /// Herald forgets the tokens of Live Activities when the user of the device changes: they were for the user before.
    mutating func forgetActivities() {
        tokens = tokens?.filter { !$0.key.hasPrefix(HeraldActivities.prefix) }
    }

    /// Herald no longer knows the device.
    mutating func forgetDevice() {
        device = nil
        credential = nil
        registered = nil
    }
}

/// What a device registers with. Its fields are those of `PUT /identification`.
struct Registration: Codable, Equatable, Sendable {
    let project_id: String
    var platform = "ios"
    let identifier: String
    let environment: HeraldSettings.Environment
    let app: String?
    let identifiers: [String: JSONValue]
    let metadata: [String: JSONValue]?
    let capabilities: [String]?

    init(_ settings: HeraldSettings, pushToken: String, locale: String?, timeZone: String) {
        project_id = settings.project
        identifier = pushToken
        environment = settings.environment
        app = settings.app
        var identifiers = settings.identifiers
        identifiers["current_locale"] = locale.map { .string($0) }
        identifiers["current_time_zone"] = .string(timeZone)
        self.identifiers = identifiers
        metadata = settings.metadata.isEmpty ? nil : settings.metadata
        capabilities = settings.capabilities.isEmpty ? nil : settings.capabilities
    }
}

/// `PUT /identification`.
struct IdentificationBody: Encodable, Sendable {
    let registration: Registration
    let previousIdentifier: String?
    let userToken: String?

    private enum Keys: String, CodingKey { case previous_identifier, user_token }

    func encode(to encoder: any Encoder) throws {
        try registration.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(previousIdentifier, forKey: .previous_identifier)
        try container.encodeIfPresent(userToken, forKey: .user_token)
    }
}

/// `credential`: only for a new device, or once for one that the backend imported.
struct IdentificationAnswer: Decodable, Sendable {
    struct Device: Decodable, Sendable { let id: String }

    let data: Device
    let credential: String?
}
