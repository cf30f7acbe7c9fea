import Foundation

/// Why a call failed.
public struct HeraldProblem: Error, Equatable, Sendable {
    /// Herald's slug, such as `user-token-invalid`; or `offline`, `storage`, `no-credential`, `not-registered`,
    /// `retry-later`, `failed`.
    public let slug: String
    public let message: String
    /// The kit keeps the change and sends it again.
    public let retry: Bool
    /// HTTP status; 0 without an answer.
    public let status: Int
    /// Seconds that Herald asked to wait.
    let retryAfter: TimeInterval?

    init(slug: String, message: String, retry: Bool, status: Int = 0, retryAfter: TimeInterval? = nil) {
        self.slug = slug
        self.message = message
        self.retry = retry
        self.status = status
        self.retryAfter = retryAfter
    }

    /// Herald no longer knows the device or its credential.
    var isUnknownDevice: Bool { status == 401 || slug == "device-not-found" }

    static func storage(_ error: any Error) -> HeraldProblem {
        HeraldProblem(slug: "storage", message: "the device's storage refused: \(error)", retry: true)
    }
}
