#if canImport(ActivityKit)
    import ActivityKit
    import Foundation
    import Herald
    import HeraldLiveActivities

    /// The cards of orders, which the backend starts, updates and ends.
    @available(iOS 16.2, *)
    enum Orders {
        /// Sends Herald the tokens of all cards, from now on.
        @MainActor
        static func follow() { HeraldClient.shared.activities.follow(OrderAttributes.self) }

        /// Reports a tap on a card: it counts as an open of the notification that started the card.
        @MainActor
        static func open(_ link: URL) async {
            let cards = Activity<OrderAttributes>.activities
            guard let herald = cards.first(where: { $0.attributes.link == link })?.attributes.herald else { return }
            await HeraldClient.shared.activities.open(herald)
        }
    }
#endif
