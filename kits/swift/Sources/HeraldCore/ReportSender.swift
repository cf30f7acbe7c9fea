import Foundation

/// Keeps reports and sends them. The app has one, and so has the notification service extension: each in its own storage.
public actor ReportSender {
    private let gateway: HeraldGateway
    private let store: any HeraldStore
    private let clock: any HeraldClock
    private var loaded: ReportQueue?
    private var sending: Task<Outcome, Never>?

    /// How a round of sending ended.
    struct Outcome: Equatable, Sendable {
        var problem: HeraldProblem?
        var hasCalled = false
        /// Seconds until the next round; nil: nothing waits.
        var again: TimeInterval?
    }

    public init(
        gateway: URL, store: any HeraldStore, transport: any HeraldTransport = URLSessionTransport(),
        clock: any HeraldClock = SystemClock()
    ) {
        self.gateway = HeraldGateway(url: gateway, transport: transport, clock: clock)
        self.store = store
        self.clock = clock
    }

    var isPending: Bool { !queue.reports.isEmpty }

    /// Stores a report. It is sent by ``send()``.
    func add(_ kind: Report.Kind, _ push: HeraldPush, button: String? = nil) {
        change { $0.add(Report(kind, push, button: button, at: clock.now())) }
    }

    /// Sends what is stored, unless Herald asked to wait. A second call waits for the first.
    func send() async -> Outcome {
        if let sending { return await sending.value }
        let task = Task { await sendAll() }
        sending = task
        return await task.value
    }

    private func sendAll() async -> Outcome {
        defer { sending = nil }
        var outcome = Outcome()
        var round = queue
        while let report = round.next(at: clock.now()) {
            guard round.backoff.maySend(at: clock.now()) else {
                outcome.again = round.backoff.remaining(at: clock.now())
                break
            }
            outcome.hasCalled = true
            do {
                let path = ["notifications", report.notification, report.kind.rawValue]
                try await gateway.call("PUT", path, body: report.body(at: clock.now()))
                change { $0.backoff.succeeded() }
            } catch {
                outcome.problem = error
                if error.retry {
                    change { outcome.again = $0.backoff.failed(error, at: clock.now(), random: clock.random()) }
                    break
                }
            }
            // Sent, or refused, such as one that is forged: a retry would not change that.
            change { $0.remove(report) }
            round = queue
        }
        return outcome
    }

    private var queue: ReportQueue {
        if let loaded { return loaded }
        // Reports are counted, not promised: an unreadable file is replaced.
        let data = (try? store.read()) ?? nil
        let queue = data.flatMap { try? JSONDecoder().decode(ReportQueue.self, from: $0) } ?? ReportQueue()
        loaded = queue
        return queue
    }

    private func change(_ change: (inout ReportQueue) -> Void) {
        var queue = queue
        change(&queue)
        loaded = queue
        if let data = try? JSONEncoder().encode(queue) { try? store.write(data) }
    }
}
