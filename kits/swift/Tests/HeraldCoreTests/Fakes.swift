import Foundation
import HeraldCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The phone's storage: what a test kills and starts again reads it.
final class MemoryStore: HeraldStore, @unchecked Sendable {
    struct Locked: Error {}

    private let lock = NSLock()
    private var data: Data?
    private var isLocked = false

    func read() throws -> Data? {
        try lock.withLock {
            if isLocked { throw Locked() }
            return data
        }
    }
    func write(_ data: Data) throws { lock.withLock { self.data = data } }
    func setLocked(_ locked: Bool) { lock.withLock { isLocked = locked } }
    var text: String { lock.withLock { String(decoding: data ?? Data(), as: UTF8.self) } }
}

/// A clock that only a test moves. What sleeps goes on as soon as the time has come.
final class TestClock: HeraldClock, @unchecked Sendable {
    private struct Sleeper {
        let until: Date
        let id: UUID
        let wake: CheckedContinuation<Void, any Error>
    }

    private let lock = NSLock()
    private var time: Date
    private var sleepers: [Sleeper] = []
    let randomValue: Double

    init(_ time: Date = Date(), random: Double = 1) {
        self.time = time
        randomValue = random
    }

    func now() -> Date { lock.withLock { time } }
    func random() -> Double { randomValue }

    func sleep(seconds: TimeInterval) async throws {
        let id = UUID()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wake in
                lock.withLock { sleepers.append(Sleeper(until: time.addingTimeInterval(seconds), id: id, wake: wake)) }
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    /// The seconds that the tasks still sleep, the shortest first.
    var sleeping: [TimeInterval] { lock.withLock { sleepers.map { $0.until.timeIntervalSince(time) }.sorted() } }

    func advance(_ seconds: TimeInterval) {
        let due = lock.withLock {
            time.addTimeInterval(seconds)
            defer { sleepers.removeAll { $0.until <= time } }
            return sleepers.filter { $0.until <= time }
        }
        for sleeper in due { sleeper.wake.resume() }
    }

    private func cancel(_ id: UUID) {
        let found = lock.withLock {
            defer { sleepers.removeAll { $0.id == id } }
            return sleepers.first { $0.id == id }
        }
        found?.wake.resume(throwing: CancellationError())
    }
}

/// The internet: it may be lost, answer in Herald's place, or pass a request on.
actor Network: HeraldTransport {
    struct Answer: Sendable {
        var status = 204
        var body = ""
        var headers: [String: String] = [:]
    }

    private var script: (@Sendable (URLRequest) async throws -> Answer?)?
    /// `PUT /identification`, in their order.
    private(set) var calls: [String] = []
    private(set) var bodies: [String] = []

    init(_ script: (@Sendable (URLRequest) async throws -> Answer?)? = nil) { self.script = script }

    /// Nil passes requests on.
    func answer(_ script: (@Sendable (URLRequest) async throws -> Answer?)?) { self.script = script }
    func goOffline() { script = { _ in throw URLError(.notConnectedToInternet) } }

    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let path = request.url?.path.replacingOccurrences(of: "/api/v1", with: "") ?? ""
        calls.append("\(request.httpMethod ?? "") \(path)")
        bodies.append(String(decoding: request.httpBody ?? Data(), as: UTF8.self))
        guard let answer = try await script?(request) else { return try await URLSessionTransport().send(request) }
        return (Data(answer.body.utf8), response(request, answer))
    }

    func download(_ request: URLRequest) async throws -> (URL, HTTPURLResponse) {
        guard let answer = try await script?(request) else { return try await URLSessionTransport().download(request) }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).tmp")
        try Data(answer.body.utf8).write(to: file)
        return (file, response(request, answer))
    }

    private func response(_ request: URLRequest, _ answer: Answer) -> HTTPURLResponse {
        HTTPURLResponse(url: request.url!, statusCode: answer.status, httpVersion: nil, headerFields: answer.headers)!
    }
}

/// The system's categories: it answers a registration before it has made it, as iOS does.
actor Categories: HeraldCategories {
    private(set) var registered: Set<String>
    private var readsUntilThere: Int
    private var waiting: Set<String>?

    init(_ registered: Set<String> = [], readsUntilThere: Int = 3) {
        self.registered = registered
        self.readsUntilThere = readsUntilThere
    }

    func ids() -> Set<String> {
        readsUntilThere -= 1
        if readsUntilThere <= 0, let waiting { registered = waiting }
        return registered
    }
    func register(_ category: HeraldCategory, keeping kept: Set<String>) { waiting = kept.union([category.id]) }
}

/// Polls until a condition holds. Fails after a minute.
func eventually(_ what: String, _ holds: () async throws -> Bool) async throws {
    struct Never: Error, CustomStringConvertible { let description: String }
    let end = Date().addingTimeInterval(60)
    while Date() < end {
        if try await holds() { return }
        try await Task.sleep(nanoseconds: 20_000_000)
    }
    throw Never(description: "never: \(what)")
}

/// A push as iOS hands it over.
func userInfo(_ notification: String = "ntf_1", more: [String: Any] = [:]) -> [AnyHashable: Any] {
    ["aps": ["alert": ["title": "Hello"]], "notification_id": notification, "project_id": "prj_1", "token": "v2.token"]
        .merging(more) { $1 }
}
