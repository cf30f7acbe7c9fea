import Foundation

/// Something that happened to a notification on this device.
struct Report: Codable, Equatable, Sendable {
    enum Kind: String, Codable, Sendable { case received, dismissed, open }

    let kind: Kind
    let notification: String
    let project: String
    let token: String
    let button: String?
    let at: Date

    init(_ kind: Kind, _ push: HeraldPush, button: String? = nil, at: Date) {
        self.kind = kind
        notification = push.notification
        project = push.project
        token = push.token
        self.button = button
        self.at = at
    }

    struct Body: Encodable, Equatable, Sendable {
        let project_id: String
        let token: String
        let ago: Int?
        let button: String?
    }

    /// `ago` only if the report waited: Herald takes its arrival for the time of a report without it.
    func body(at now: Date) -> Body {
        let ago = Int(now.timeIntervalSince(at))
        return Body(project_id: project, token: token, ago: ago > 0 ? ago : nil, button: button)
    }
}

/// Reports that Herald has not accepted yet, oldest first.
struct ReportQueue: Codable, Equatable, Sendable {
    static let maxReports = 100
    /// Herald accepts them for 30 days.
    static let maxAge: TimeInterval = 30 * 86_400

    private(set) var reports: [Report] = []
    var backoff = Backoff()

    /// The first of a kind counts. Beyond 100 the oldest is dropped.
    mutating func add(_ report: Report) {
        guard !reports.contains(where: { $0.kind == report.kind && $0.notification == report.notification }) else { return }
        reports = (reports + [report]).suffix(Self.maxReports)
    }

    mutating func remove(_ report: Report) {
        reports.removeAll { $0 == report }
    }

    /// The report that is sent next.
    mutating func next(at now: Date) -> Report? {
        reports.removeAll { now.timeIntervalSince($0.at) > Self.maxAge }
        return reports.first
    }
}
