import Foundation

/// What Herald has confirmed, and why the last call failed.
public struct HeraldStatus: Equatable, Sendable {
    /// The id that Herald gave the device, for the target `device:<id>`.
    public let device: String?
    public let user: String?
    public let topics: [String]
    /// A change or report has not reached Herald yet. The kit keeps it and retries.
    public let pending: Bool
    /// Nil if the last call succeeded.
    public let problem: HeraldProblem?
}

/// This installation's device at Herald. Each call stores what is wanted, then calls Herald. No call throws: what Herald refused is in
/// ``HeraldStatus/problem``, and what could not be sent is sent later.
public actor HeraldClient {
    let settings: HeraldSettings
    let gateway: HeraldGateway
    let clock: any HeraldClock
    private let store: any HeraldStore
    private let reports: ReportSender
    private let removeShown: @Sendable () async -> Void
    private let onChange: @Sendable (HeraldStatus) -> Void

    /// Nil until the storage could be read.
    private var loaded: DeviceState?
    /// Changes from before the storage could be read.
    private var early: [@Sendable (inout DeviceState) -> Void] = []
    /// The user token of a login that Herald has not confirmed yet, and the last one: a device that registers again logs in again.
    var pendingToken: String?
    var lastToken: String?
    /// Herald refused to register this device. The next ``register(token:)`` tries again.
    var isRegistrationRefused = false
    var problem: HeraldProblem?
    /// Whether the pass that runs has called Herald.
    var hasCalled = false
    /// A pass that has not begun, and the one that runs.
    private var queued: Task<Void, Never>?
    private var running: Task<Void, Never>?
    /// The last question for preferences.
    var choosing: Task<HeraldKindChoices, Never>?
    private var timer: Task<Void, Never>?

    /// - Parameters:
    ///   - store: for the device's credential, which acts for this device: the keychain.
    ///   - reports: for what happened to notifications.
    ///   - removeShown: removes the shown notifications when a user logs out.
    ///   - onChange: called after each attempt to send.
    public init(
        settings: HeraldSettings, store: any HeraldStore, reports: any HeraldStore,
        transport: any HeraldTransport = URLSessionTransport(), clock: any HeraldClock = SystemClock(),
        removeShown: @escaping @Sendable () async -> Void = {}, onChange: @escaping @Sendable (HeraldStatus) -> Void = { _ in }
    ) {
        self.settings = settings
        self.store = store
        self.clock = clock
        self.removeShown = removeShown
        self.onChange = onChange
        gateway = HeraldGateway(url: settings.gateway, transport: transport, clock: clock)
        self.reports = ReportSender(gateway: settings.gateway, store: reports, transport: transport, clock: clock)
    }

    /// Call it at every start with the device token of APNs.
    @discardableResult
    public func register(token: Data) async -> HeraldStatus {
        let pushToken = hexadecimal(token)
        isRegistrationRefused = false
        return await change { $0.pushToken = pushToken }
    }

    /// Takes the credential that your backend got from `POST /devices`, for a device that it imported.
    @discardableResult
    public func adopt(device: String, credential: String) async -> HeraldStatus {
        // It may have been `no-credential`.
        problem = nil
        return await change {
            $0.device = device
            $0.credential = credential
        }
    }

    /// Assigns the device to a user. The shown notifications of another user are removed.
    /// - Parameter userToken: a JWT from your backend.
    @discardableResult
    public func login(userToken: String) async -> HeraldStatus {
        guard let claims = UserTokenClaims(userToken) else {
            problem = HeraldProblem(slug: "user-token-invalid", message: "the user token is no JWT", retry: false)
            return await changed()
        }
        let known = state
        if let user = known?.user, user != claims.sub { await removeShown() }
        lastToken = userToken
        let isKnown = known?.user == claims.sub && known?.userTokenIat == claims.iat && known?.isLoggingOut == false
        pendingToken = isKnown ? nil : userToken
        return await settle()
    }

    /// Ends the pushes to the user on this device, and removes the shown notifications.
    @discardableResult
    public func logout() async -> HeraldStatus {
        pendingToken = nil
        lastToken = nil
        let status = Task { await change { state in
            state.isLoggingOut = state.device != nil
            state.user = nil
            state.userTokenIat = nil
            state.forgetActivities()
        } }
        await removeShown()
        return await status.value
    }

    /// The device's topics.
    public nonisolated var topics: HeraldTopics { HeraldTopics(client: self) }

    /// The tokens with which Apple's other push types reach the device.
    public nonisolated var tokens: HeraldTokens { HeraldTokens(client: self) }

    /// Reports that a push arrived. The notification service extension does it.
    @discardableResult
    public func received(_ push: HeraldPush) async -> HeraldStatus {
        await keep(.received, push)
    }

    /// Reports that a person dismissed a notification.
    @discardableResult
    public func dismissed(_ push: HeraldPush) async -> HeraldStatus {
        await keep(.dismissed, push)
    }

    /// Reports that a person opened a notification, or pressed one of its buttons.
    @discardableResult
    public func open(_ push: HeraldPush, button: String? = nil) async -> HeraldStatus {
        await keep(.open, push, button: button)
    }

    /// Reports what a person did with a notification.
    @discardableResult
    public func report(_ response: HeraldResponse, _ push: HeraldPush) async -> HeraldStatus {
        switch response {
        case .opened: await open(push)
        case .pressed(let button, _): await open(push, button: button)
        case .dismissed: await dismissed(push)
        }
    }

    /// Sends what is pending, unless Herald asked to wait. Call it when the app becomes active.
    @discardableResult
    public func settle() async -> HeraldStatus {
        // The pass that runs may have left behind what this call is for.
        let pass = queued ?? Task { [running] in
            await running?.value
            await settleOnce()
        }
        queued = pass
        await pass.value
        return await changed()
    }

    /// What Herald has confirmed so far.
    public var status: HeraldStatus {
        get async {
            let state = state
            let topics = state?.topics ?? [:]
            let step = state?.nextStep(registration, userToken: pendingToken, at: clock.now())
            let unread = !early.isEmpty || (state == nil && pendingToken != nil)
            return HeraldStatus(
                device: state?.device, user: state?.user, topics: topics.filter { $0.value == .subscribed }.keys.sorted(),
                pending: await reports.isPending || step != nil || unread, problem: problem)
        }
    }

    /// The stored state; nil while it cannot be read.
    var state: DeviceState? {
        if let loaded { return loaded }
        do {
            let data = try store.read()
            let stored = data.flatMap { try? JSONDecoder().decode(DeviceState.self, from: $0) }
            var state = stored.flatMap { $0.project == settings.project ? $0 : nil } ?? DeviceState(project: settings.project)
            for change in early { change(&state) }
            loaded = state
            if !early.isEmpty { save() }
            early = []
        } catch {
            problem = .storage(error)
        }
        return loaded
    }

    func update(_ change: @Sendable @escaping (inout DeviceState) -> Void) {
        guard var state else { return early.append(change) }
        change(&state)
        guard state != loaded else { return }
        loaded = state
        save()
    }

    /// What this build registers; nil if it must not.
    var registration: Registration? {
        guard !isRegistrationRefused, let pushToken = state?.pushToken else { return nil }
        return Registration(
            settings, pushToken: pushToken, locale: Locale.preferredLanguages.first, timeZone: TimeZone.current.identifier)
    }

    func change(_ change: @Sendable @escaping (inout DeviceState) -> Void) async -> HeraldStatus {
        update(change)
        return await settle()
    }

    /// Not named `report`: `.dismissed` is a case of ``HeraldResponse`` too.
    private func keep(_ kind: Report.Kind, _ push: HeraldPush, button: String? = nil) async -> HeraldStatus {
        await reports.add(kind, push, button: button)
        return await settle()
    }

    private func settleOnce() async {
        running = queued
        queued = nil
        // A pass without a call keeps the refusal: an earlier one may have sent what this one is for.
        let before = problem.flatMap { $0.retry ? nil : $0 }
        problem = nil
        hasCalled = false
        let again = await sendChanges()
        let sent = await reports.send()
        problem = problem ?? sent.problem
        if !hasCalled && !sent.hasCalled { problem = problem ?? before }
        guard let delay = [again, sent.again].compactMap({ $0 }).min() else { return }
        timer?.cancel()
        timer = Task { [weak self, clock] in
            guard (try? await clock.sleep(seconds: delay)) != nil else { return }
            await self?.settle()
        }
    }

    private func changed() async -> HeraldStatus {
        let status = await status
        onChange(status)
        return status
    }

    private func save() {
        do {
            try store.write(JSONEncoder().encode(loaded))
        } catch {
            problem = .storage(error)
        }
    }
}
