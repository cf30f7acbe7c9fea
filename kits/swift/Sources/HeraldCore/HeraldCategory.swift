import Foundation

/// A notification category: the buttons of one notification. iOS shows no button of a category that is not registered.
public struct HeraldCategory: Equatable, Sendable {
    /// At most so many are kept: iOS would keep every one.
    static let maxKept = 64
    private static let prefix = "herald."

    /// The same for the same buttons.
    public let id: String
    public let buttons: [HeraldButton]

    /// For a push with buttons, or one whose dismissal Herald wants to know. Nil if the push has a category of the app's own, or needs none.
    init?(_ push: HeraldPush) {
        guard push.category == nil, push.asksReceipt || !push.buttons.isEmpty else { return nil }
        buttons = push.buttons
        let words = buttons.flatMap { [$0.id, $0.title, String($0.opens), String($0.destructive)] }
        id = Self.prefix + Self.hash(words.joined(separator: "\u{0}"))
    }

    /// The ids that stay beside this one: all of the app's, and of Herald's the 63 that were used last.
    /// - Parameter used: Herald's ids, the last used first.
    func kept(of registered: Set<String>, used: [String]) -> Set<String> {
        let own = used.filter { $0 != id && registered.contains($0) }.prefix(Self.maxKept - 1)
        return registered.filter { !$0.hasPrefix(Self.prefix) }.union(own)
    }

    /// FNV-1a of 64 bits: the same in each process, as Swift's hash is not.
    private static func hash(_ text: String) -> String {
        let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return String(hash, radix: 16)
    }
}

/// The categories that the system has.
public protocol HeraldCategories: Sendable {
    func ids() async -> Set<String>
    /// Registers a category and keeps those of `kept`. The system answers before it has done so.
    func register(_ category: HeraldCategory, keeping kept: Set<String>) async
}

/// Registers the categories of buttons.
actor CategoryRegistrar {
    /// A category that is not there after this time is shown without buttons.
    private static let reads = 20
    private static let readEvery: TimeInterval = 0.05

    private let categories: any HeraldCategories
    private let store: any HeraldStore
    private let clock: any HeraldClock
    /// The system has one call, which replaces all categories: two at once would lose one.
    private var last: Task<String?, Never>?

    init(categories: any HeraldCategories, store: any HeraldStore, clock: any HeraldClock) {
        self.categories = categories
        self.store = store
        self.clock = clock
    }

    /// - Returns: the id for the notification's content, once the system has the category.
    func register(_ category: HeraldCategory) async -> String? {
        let task = Task { [last] in
            _ = await last?.value
            return await registerAlone(category)
        }
        last = task
        return await task.value
    }

    private func registerAlone(_ category: HeraldCategory) async -> String? {
        let data = (try? store.read()) ?? nil
        let used = data.flatMap { try? JSONDecoder().decode([String].self, from: $0) } ?? []
        let now = [category.id] + used.filter { $0 != category.id }.prefix(HeraldCategory.maxKept - 1)
        if let data = try? JSONEncoder().encode(now) { try? store.write(data) }
        let registered = await categories.ids()
        if registered.contains(category.id) { return category.id }
        await categories.register(category, keeping: category.kept(of: registered, used: used))
        for _ in 0..<Self.reads {
            if await categories.ids().contains(category.id) { return category.id }
            guard (try? await clock.sleep(seconds: Self.readEvery)) != nil else { return nil }
        }
        return nil
    }
}
