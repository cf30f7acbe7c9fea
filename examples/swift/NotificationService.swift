import HeraldNotificationService

/// The extension's principal class: it reports receipts, attaches images and shows buttons.
final class NotificationService: HeraldNotificationService {}
