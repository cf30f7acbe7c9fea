import ActivityKit
import SwiftUI
import WidgetKit

@main
struct OrderCards: WidgetBundle {
    var body: some Widget { OrderCard() }
}

/// The card of an order, on the lock screen and in the Dynamic Island.
struct OrderCard: Widget {
    var body: some WidgetConfiguration {
        ActivityConfiguration(for: OrderAttributes.self) { context in
            HStack {
                Text("Order \(context.attributes.order): \(context.state.status)")
                Spacer()
                Text("\(context.state.minutes) min")
            }
            .padding()
            .widgetURL(context.attributes.link)
        } dynamicIsland: { context in
            DynamicIsland {
                DynamicIslandExpandedRegion(.center) { Text(context.state.status) }
            } compactLeading: {
                Image(systemName: "shippingbox")
            } compactTrailing: {
                Text("\(context.state.minutes) min")
            } minimal: {
                Text("\(context.state.minutes)")
            }
            .widgetURL(context.attributes.link)
        }
    }
}
