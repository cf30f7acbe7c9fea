import Foundation

/// When a failed call may be sent again. Stored, because a Retry-After outlives the process.
struct Backoff: Codable, Equatable, Sendable {
    private static let first: TimeInterval = 30
    private static let longest: TimeInterval = 3_600

    private var failures = 0
    /// The end of Herald's Retry-After.
    private var notBefore: Date?

    /// A call of the app may be sent at once, but never before Retry-After.
    func maySend(at now: Date) -> Bool { notBefore.map { now >= $0 } ?? true }

    mutating func succeeded() { self = Backoff() }

    /// - Returns: the seconds until the kit itself sends again. Random, so that phones do not all call at the moment at which Herald is back.
    mutating func failed(_ problem: HeraldProblem, at now: Date, random: Double) -> TimeInterval {
        let delay = random * min(Self.longest, Self.first * pow(2, Double(min(failures, 10))))
        failures += 1
        guard let retryAfter = problem.retryAfter else { return delay }
        notBefore = now.addingTimeInterval(retryAfter)
        return retryAfter + delay
    }

    /// The seconds that are left of Retry-After.
    func remaining(at now: Date) -> TimeInterval { max(0, notBefore?.timeIntervalSince(now) ?? 0) }
}
