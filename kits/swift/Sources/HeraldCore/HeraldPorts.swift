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
        let (data, response) = try await URLSession.shared.data(for: request)
        guard let answer = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        return (data, answer)
    }

    public func download(_ request: URLRequest) async throws -> (URL, HTTPURLResponse) {
        let (file, response) = try await URLSession.shared.download(for: request)
        guard let answer = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        return (file, answer)
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

/// A file that only this app or extension reads.
public struct FileStore: HeraldStore {
    private let url: URL

    /// - Parameter name: the file's name in the folder for application support.
    public init(name: String) {
        url = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0].appendingPathComponent(name)
    }

    public init(url: URL) { self.url = url }

    public func read() throws -> Data? {
        FileManager.default.fileExists(atPath: url.path) ? try Data(contentsOf: url) : nil
    }

    public func write(_ data: Data) throws {
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: url, options: .atomic)
    }
}
