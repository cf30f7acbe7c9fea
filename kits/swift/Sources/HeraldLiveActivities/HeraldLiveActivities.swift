#if canImport(ActivityKit)
    import ActivityKit
    import Foundation
    @_exported import HeraldCore

    /// The attributes of activities that Herald starts.
    @available(iOS 16.2, *)
    public protocol HeraldActivityAttributes: ActivityAttributes, Sendable {
        /// Nil: the app started the activity itself.
        var herald: HeraldActivity? { get }
    }

    @available(iOS 16.2, *)
    extension HeraldActivities {
        /// Sends Herald the tokens of all activities of a type, from now on. Call it once at each start, also of a start in the background.
        /// - Parameter type: its name is the backend's `attributes_type`.
        public func follow<Attributes: HeraldActivityAttributes>(_ type: Attributes.Type) {
            if #available(iOS 17.2, *) {
                Task {
                    for await token in Activity<Attributes>.pushToStartTokenUpdates {
                        await setStartToken(token, attributesType: String(describing: type))
                    }
                }
            }
            Task {
                for await activity in Activity<Attributes>.activityUpdates {
                    await endRepeated(type)
                    guard let herald = activity.attributes.herald else { continue }
                    follow(activity, as: herald.activity)
                }
            }
        }

        /// Sends Herald the tokens of an activity that the app started itself.
        /// - Parameter id: the id that the backend gives the activity, with `start: false`.
        public func follow<Attributes: ActivityAttributes & Sendable>(_ activity: Activity<Attributes>, as id: String) {
            Task { for await token in activity.pushTokenUpdates { await setToken(token, of: id) } }
            Task {
                for await state in activity.activityStateUpdates where state == .ended || state == .dismissed { await end(id) }
            }
        }

        private func endRepeated<Attributes: HeraldActivityAttributes>(_ type: Attributes.Type) async {
            let activities = Activity<Attributes>.activities
            let repeated = HeraldActivity.repeated(activities.map { ($0.id, $0.attributes.herald) })
            for activity in activities where repeated.contains(activity.id) {
                await activity.end(nil, dismissalPolicy: .immediate)
            }
        }
    }
#endif
