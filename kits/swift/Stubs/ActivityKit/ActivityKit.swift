// What the kit uses of Apple's ActivityKit, for compilers without it. Nothing here works.
import Foundation

/// https://developer.apple.com/documentation/activitykit/activityattributes
public protocol ActivityAttributes: Codable {
    associatedtype ContentState: Codable, Hashable, Sendable
}

/// https://developer.apple.com/documentation/activitykit/activitystate
public enum ActivityState: Codable, Hashable, Sendable { case active, ended, dismissed, stale }

/// https://developer.apple.com/documentation/activitykit/activitycontent
public struct ActivityContent<State: Codable & Hashable & Sendable>: Sendable {
    public let state: State
    public let staleDate: Date?
}

/// https://developer.apple.com/documentation/activitykit/activityuidismissalpolicy
public struct ActivityUIDismissalPolicy: Sendable {
    public static let immediate = ActivityUIDismissalPolicy()
}

/// https://developer.apple.com/documentation/activitykit/activity
public final class Activity<Attributes: ActivityAttributes & Sendable>: Identifiable, Sendable {
    public let id: String
    public let attributes: Attributes

    init(id: String, attributes: Attributes) {
        self.id = id
        self.attributes = attributes
    }

    /// https://developer.apple.com/documentation/activitykit/activity/activities
    public static var activities: [Activity<Attributes>] { [] }
    /// https://developer.apple.com/documentation/activitykit/activity/activityupdates-swift.type.property
    public static var activityUpdates: AsyncStream<Activity<Attributes>> { AsyncStream { $0.finish() } }
    /// https://developer.apple.com/documentation/activitykit/activity/pushtostarttokenupdates
    public static var pushToStartTokenUpdates: AsyncStream<Data> { AsyncStream { $0.finish() } }
    /// https://developer.apple.com/documentation/activitykit/activity/pushtokenupdates-swift.property
    public var pushTokenUpdates: AsyncStream<Data> { AsyncStream { $0.finish() } }
    /// https://developer.apple.com/documentation/activitykit/activity/activitystateupdates-swift.property
    public var activityStateUpdates: AsyncStream<ActivityState> { AsyncStream { $0.finish() } }

    /// https://developer.apple.com/documentation/activitykit/activity/end(_:dismissalpolicy:)
    public func end(
        _ content: ActivityContent<Attributes.ContentState>?, dismissalPolicy: ActivityUIDismissalPolicy
    ) async {}
}
