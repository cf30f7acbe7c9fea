import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One stored value of this installation.
public protocol HeraldStore: Sendable {
    /// Nil if nothing was stored yet. Throws if that cannot be told, such as a keychain before the first unlock: the kit then waits,
    /// because a device that registers without its credential is a new one.
    func read() throws -> Data?
    func write(_ data: Data) throws
}

/// Sends requests. Throws without an answer.
public protocol HeraldTransport: Sendable {
    /// Follows no redirect: another host would get the credential, the body and the last word.
    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse)
    /// Into a file, because an extension has little memory. The caller moves or removes the file.
    func download(_ request: URLRequest) async throws -> (URL, HTTPURLResponse)
}

public protocol HeraldClock: Sendable {
    func now() -> Date
    /// Throws if the task is cancelled.
    func sleep(seconds: TimeInterval) async throws
    /// From 0 to 1.
    func random() -> Double
}

public struct URLSessionTransport: HeraldTransport {
    public init() {}

    public func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        try await Calls.send(request)
    }

    public func download(_ request: URLRequest) async throws -> (URL, HTTPURLResponse) {
        let (file, response) = try await URLSession.shared.download(for: request)
        guard let answer = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        return (file, answer)
    }
}

/// Calls whose answer may be a redirect, which is not followed. A delegate alone decides that wherever Foundation runs: of calls that await an
/// answer, Linux asks none.
private final class Calls: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private struct Call {
        let answer: CheckedContinuation<(Data, HTTPURLResponse), any Error>
        var data = Data()
    }

    private static let calls = Calls()
    /// Without a store for cookies and answers.
    private static let session = URLSession(configuration: .ephemeral, delegate: calls, delegateQueue: nil)

    private let lock = NSLock()
    private var running: [Int: Call] = [:]

    static func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        try await withCheckedThrowingContinuation { answer in
            let task = session.dataTask(with: request)
            calls.lock.withLock { calls.running[task.taskIdentifier] = Call(answer: answer) }
            task.resume()
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        lock.withLock { running[dataTask.taskIdentifier]?.data.append(data) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let call = lock.withLock({ running.removeValue(forKey: task.taskIdentifier) }) else { return }
        guard error == nil, let response = task.response as? HTTPURLResponse else {
            return call.answer.resume(throwing: error ?? URLError(.badServerResponse))
        }
        call.answer.resume(returning: (call.data, response))
    }
}

public struct SystemClock: HeraldClock {
    public init() {}

    public func now() -> Date { Date() }
    public func sleep(seconds: TimeInterval) async throws {
        try await Task.sleep(nanoseconds: UInt64(max(0, seconds) * 1_000_000_000))
    }
    public func random() -> Double { Double.random(in: 0...1) }
}

/// A file that only this app or extension reads, and that stays out of backups: it has open tokens.
public struct FileStore: HeraldStore {
    private let url: URL
    private let excludeFromBackup: @Sendable (URL) throws -> Void

    /// - Parameter name: the file's name in the folder for application support.
    public init(name: String) {
        self.init(url: FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0].appendingPathComponent(name))
    }

    public init(url: URL) { self.init(url: url, excludeFromBackup: Self.excludeFromBackup) }

    init(url: URL, excludeFromBackup: @escaping @Sendable (URL) throws -> Void) {
        self.url = url
        self.excludeFromBackup = excludeFromBackup
    }

    public func read() throws -> Data? {
        FileManager.default.fileExists(atPath: url.path) ? try Data(contentsOf: url) : nil
    }

    public func write(_ data: Data) throws {
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: url, options: .atomic)
        // Each time, because an atomic write makes another file.
        try excludeFromBackup(url)
    }

    @Sendable private static func excludeFromBackup(_ file: URL) throws {
        // Only Apple's systems have backups, and the attribute.
        #if canImport(Darwin)
            var file = file
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try file.setResourceValues(values)
        #endif
    }
}
