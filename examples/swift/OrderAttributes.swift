#if canImport(ActivityKit)
    import ActivityKit
    import Foundation
    import HeraldLiveActivities

    /// What the card of an order shows. Its name is the backend's `attributes_type`.
    @available(iOS 16.2, *)
    struct OrderAttributes: HeraldActivityAttributes {
        struct ContentState: Codable, Hashable, Sendable {
            let status: String
            let minutes: Int
        }

        let order: String
        let herald: HeraldActivity?

        /// A tap on the card opens the app with it.
        var link: URL? { URL(string: "herald-example:/orders/\(order)") }
    }
#endif
