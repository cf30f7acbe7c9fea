import Foundation

/// A notification category: the buttons of one notification. iOS shows no button, and reports no dismissal, of a category that is not
/// registered.
public struct HeraldCategory: Equatable, Sendable {
    /// At most so many are kept: iOS would keep every one.
    static let maxKept = 64
    private static let prefix = "herald."

    /// From Herald: the same for the same buttons.
    public let id: String
    public let buttons: [HeraldButton]

    /// Nil if the push has a category of the app's own, or none.
    init?(_ push: HeraldPush) {
        guard let id = push.category, Self.isHeralds(id) else { return nil }
        self.id = id
        buttons = push.buttons
    }

    public static func isHeralds(_ id: String) -> Bool { id.hasPrefix(prefix) }

    /// The ids that stay beside this one: all of the app's, and of Herald's the 63 that were used last.
    /// - Parameter used: Herald's ids, the last used first.
    func kept(of registered: Set<String>, used: [String]) -> Set<String> {
        let own = used.filter { $0 != id && registered.contains($0) }.prefix(Self.maxKept - 1)
        return registered.filter { !Self.isHeralds($0) }.union(own)
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
    private var last: Task<Void, Never>?

    init(categories: any HeraldCategories, store: any HeraldStore, clock: any HeraldClock) {
        self.categories = categories
        self.store = store
        self.clock = clock
    }

    /// Returns once the system has the category.
    func register(_ category: HeraldCategory) async {
        let task = Task { [last] in
            await last?.value
            await registerAlone(category)
        }
        last = task
        await task.value
    }

    private func registerAlone(_ category: HeraldCategory) async {
        let data = (try? store.read()) ?? nil
        let used = data.flatMap { try? JSONDecoder().decode([String].self, from: $0) } ?? []
        let now = [category.id] + used.filter { $0 != category.id }.prefix(HeraldCategory.maxKept - 1)
        if let data = try? JSONEncoder().encode(now) { try? store.write(data) }
        let registered = await categories.ids()
        if registered.contains(category.id) { return }
        await categories.register(category, keeping: category.kept(of: registered, used: used))
        for _ in 0..<Self.reads {
            if await categories.ids().contains(category.id) { return }
            guard (try? await clock.sleep(seconds: Self.readEvery)) != nil else { return }
        }
    }
}
