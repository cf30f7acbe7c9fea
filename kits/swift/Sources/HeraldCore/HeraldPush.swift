import Foundation

/// A button of a notification.
public struct HeraldButton: Equatable, Sendable {
    public let id: String
    public let title: String
    /// What a press opens; nil: what a tap opens.
    public let linkTo: String?
    /// False: the press is reported and the app stays closed.
    public let opens: Bool
    public let destructive: Bool
}

/// A push of Herald. Later versions of Herald may add or omit fields.
public struct HeraldPush: Equatable, Sendable {
    public let notification: String
    public let project: String
    /// The open token: it proves that this device got the push.
    public let token: String
    public let linkTo: String?
    public let data: [String: String]
    public let buttons: [HeraldButton]
    let image: URL?
    /// The app's own category.
    let category: String?
    /// Herald asks this device to report that the push arrived.
    let asksReceipt: Bool

    /// From `userInfo` of a notification. Nil for a push of another sender.
    public init?(userInfo: [AnyHashable: Any]) {
        guard let notification = userInfo["notification_id"] as? String,
            let project = userInfo["project_id"] as? String,
            let token = userInfo["token"] as? String
        else { return nil }
        self.notification = notification
        self.project = project
        self.token = token
        linkTo = userInfo["link_to"] as? String
        data = userInfo["data"] as? [String: String] ?? [:]
        buttons = (userInfo["buttons"] as? [[String: Any]] ?? []).compactMap(Self.button)
        image = (userInfo["image"] as? String).flatMap { URL(string: $0) }.flatMap { $0.scheme == "https" ? $0 : nil }
        let aps = userInfo["aps"] as? [String: Any]
        category = (aps?["category"] as? String).flatMap { $0.isEmpty ? nil : $0 }
        asksReceipt = userInfo["receipt"] != nil
    }

    /// The push that started a Live Activity.
    init(_ herald: HeraldActivity) {
        notification = herald.notification
        project = herald.project
        token = herald.token
        linkTo = nil
        data = [:]
        buttons = []
        image = nil
        category = nil
        asksReceipt = false
    }

    /// The URL of a link that the kit opens by itself: `https`, or one of the app's own schemes, which `CFBundleURLTypes` of its Info.plist lists.
    /// Nil for another one, which would start another app, or call a number, in the name of a push.
    public static func url(link: String, infoDictionary: [String: Any]?) -> URL? {
        let types = infoDictionary?["CFBundleURLTypes"] as? [[String: Any]] ?? []
        let own = types.flatMap { $0["CFBundleURLSchemes"] as? [String] ?? [] }
        guard let url = URL(string: link), let scheme = url.scheme?.lowercased(), (own.map { $0.lowercased() } + ["https"]).contains(scheme)
        else { return nil }
        return url
    }

    private static func button(_ fields: [String: Any]) -> HeraldButton? {
        guard let id = fields["id"] as? String, let title = fields["title"] as? String else { return nil }
        return HeraldButton(
            id: id, title: title, linkTo: fields["link_to"] as? String, opens: fields["opens"] as? Bool ?? true,
            destructive: fields["destructive"] as? Bool ?? false)
    }
}

/// What a person did with a notification.
public enum HeraldResponse: Equatable, Sendable {
    /// - Parameter link: what the app shows now; nil: nothing in particular.
    case opened(link: String?)
    case pressed(button: String, link: String?)
    case dismissed

    /// - Parameter action: the response's `actionIdentifier`. The app's own actions count as an open.
    public init(action: String, push: HeraldPush) {
        if action == Self.dismissAction {
            self = .dismissed
        } else if let button = push.buttons.first(where: { $0.id == action }) {
            self = .pressed(button: button.id, link: button.opens ? button.linkTo ?? push.linkTo : nil)
        } else {
            self = .opened(link: push.linkTo)
        }
    }

    public var link: String? {
        switch self {
        case .opened(let link), .pressed(_, let link): link
        case .dismissed: nil
        }
    }

    /// https://developer.apple.com/documentation/usernotifications/unnotificationdismissactionidentifier
    static let dismissAction = "com.apple.UNNotificationDismissActionIdentifier"
}
