import Foundation

/// What Herald adds to the attributes of an activity that it starts. Declare `var herald: HeraldActivity?` in yours.
public struct HeraldActivity: Codable, Hashable, Sendable {
    /// The id that the backend gave the activity.
    public let activity: String
    let project: String
    /// The notification that started it: a tap is an open of this notification.
    let notification: String
    let token: String

    private enum CodingKeys: String, CodingKey {
        case activity
        case project = "project_id"
        case notification = "notification_id"
        case token
    }

    /// A card on this phone: iOS's id for it, and what Herald added.
    public typealias Card = (id: String, herald: HeraldActivity?)

    /// The cards to end: a start that Herald repeated may have made a second one for the same activity. The first one stays.
    public static func repeated(_ cards: [Card]) -> [String] {
        var known = Set<String>()
        return cards.compactMap { card in
            guard let activity = card.herald?.activity else { return nil }
            return known.insert(activity).inserted ? nil : card.id
        }
    }
}

/// The newest state of an activity.
public struct HeraldActivityState<ContentState: Decodable & Sendable>: Sendable {
    public let version: Int
    public let isEnded: Bool
    public let contentState: ContentState
}

/// The Live Activities of a device. Call it as `herald.activities`.
public struct HeraldActivities: Sendable {
    let client: HeraldClient

    /// Call it with each token of `pushToStartTokenUpdates`.
    /// - Parameter attributesType: the name of the attributes' type, as the backend writes it in `attributes_type`.
    @discardableResult
    public func setStartToken(_ token: Data, attributesType: String) async -> HeraldStatus {
        await client.tokens.set(token, for: "liveactivity/\(attributesType)")
    }

    /// Call it with each token of `pushTokenUpdates`. Herald answers with a push of the newest state.
    /// - Parameter activity: the id that the backend gave the activity.
    @discardableResult
    public func setToken(_ token: Data, of activity: String) async -> HeraldStatus {
        await client.tokens.set(token, for: Self.type(activity))
    }

    /// The activity has ended, or the person removed it.
    @discardableResult
    public func end(_ activity: String) async -> HeraldStatus { await client.tokens.remove(Self.type(activity)) }

    /// Reports that a person opened the app from an activity that Herald started.
    @discardableResult
    public func open(_ herald: HeraldActivity) async -> HeraldStatus { await client.open(HeraldPush(herald)) }

    /// The newest state, for an app that starts or has missed a push. Nil if there is none for this device, or Herald does not answer.
    public func state<ContentState: Decodable & Sendable>(
        of activity: String, as type: ContentState.Type
    ) async -> HeraldActivityState<ContentState>? {
        await client.activityState(activity)
    }

    static func type(_ activity: String) -> String { "\(prefix)\(activity)" }
    static let prefix = "activity/"
}

extension HeraldClient {
    /// The device's Live Activities.
    public nonisolated var activities: HeraldActivities { HeraldActivities(client: self) }

    func activityState<ContentState: Decodable & Sendable>(_ activity: String) async -> HeraldActivityState<ContentState>? {
        guard let device = state?.device, let credential = state?.credential else { return nil }
        do {
            let data = try await gateway.call("GET", ["devices", device, "activities", activity], credential: credential)
            let answer = try gateway.decode(ActivityAnswer<ContentState>.self, data).data
            return HeraldActivityState(
                version: answer.version, isEnded: answer.status == "ended", contentState: answer.content_state)
        } catch {
            return nil
        }
    }
}

/// `GET /devices/{id}/activities/{activity}`.
private struct ActivityAnswer<ContentState: Decodable & Sendable>: Decodable, Sendable {
    struct Activity: Decodable, Sendable {
        let version: Int
        let status: String
        let content_state: ContentState
    }

    let data: Activity
}
