import Foundation
import HeraldCore
import UserNotifications

/// The principal class of a notification service extension: reports receipts, attaches images, shows buttons. The extension's Info.plist
/// needs `HeraldGateway`.
open class HeraldNotificationService: UNNotificationServiceExtension {
    /// One for all notifications that this process handles. Nil without `HeraldGateway`.
    private static let service: NotificationService? = HeraldSettings.gateway(infoDictionary: Bundle.main.infoDictionary).map {
        NotificationService(
            reports: ReportSender(gateway: $0, store: FileStore(name: "herald-reports.json")),
            categories: SystemCategories(), categoryStore: FileStore(name: "herald-categories.json"))
    }

    private var delivery: Delivery?

    open override func didReceive(
        _ request: UNNotificationRequest, withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
    ) {
        guard let service = Self.service, let push = HeraldPush(userInfo: request.content.userInfo),
            let content = request.content.mutableCopy() as? UNMutableNotificationContent
        else { return contentHandler(request.content) }
        let delivery = Delivery(content, contentHandler)
        self.delivery = delivery
        Task { delivery.finish(attaching: await service.prepare(push)) }
    }

    /// The system would show the notification as it came.
    open override func serviceExtensionTimeWillExpire() {
        delivery?.finish()
    }
}

/// Shows the notification once, whether its image or the end of the time come first.
private final class Delivery: @unchecked Sendable {
    private let lock = NSLock()
    private let content: UNMutableNotificationContent
    private var handler: ((UNNotificationContent) -> Void)?

    init(_ content: UNMutableNotificationContent, _ handler: @escaping (UNNotificationContent) -> Void) {
        self.content = content
        self.handler = handler
    }

    func finish(attaching image: URL? = nil) {
        lock.lock()
        defer { lock.unlock() }
        guard let handler else { return }
        self.handler = nil
        if let image, let attachment = try? UNNotificationAttachment(identifier: "image", url: image) {
            content.attachments = [attachment]
        }
        handler(content)
    }
}

private struct SystemCategories: HeraldCategories {
    func ids() async -> Set<String> {
        Set(await UNUserNotificationCenter.current().notificationCategories().map(\.identifier))
    }

    func register(_ category: HeraldCategory, keeping kept: Set<String>) async {
        let center = UNUserNotificationCenter.current()
        let actions = category.buttons.map { button in
            var options: UNNotificationActionOptions = []
            if button.opens { options.insert(.foreground) }
            if button.destructive { options.insert(.destructive) }
            return UNNotificationAction(identifier: button.id, title: button.title, options: options)
        }
        let new = UNNotificationCategory(
            identifier: category.id, actions: actions, intentIdentifiers: [], options: [.customDismissAction])
        let others = await center.notificationCategories().filter { kept.contains($0.identifier) }
        center.setNotificationCategories(others.union([new]))
    }
}
