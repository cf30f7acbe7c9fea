import Foundation
import Testing

@testable import HeraldCore

private let day: TimeInterval = 86_400
private let start = Date(timeIntervalSince1970: 1_800_000_000)
private let push = HeraldPush(userInfo: userInfo())!

@Test func waitsTwiceAsLongAfterEachFailureAndNeverLessThanHeraldAsks() {
    var backoff = Backoff()
    let offline = HeraldProblem(slug: "offline", message: "", retry: true)
    let delays = (0..<9).map { _ in backoff.failed(offline, at: start, random: 1) }
    #expect(delays == [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600])
    #expect(backoff.failed(offline, at: start, random: 0.5) == 1_800)
    #expect(backoff.maySend(at: start))

    let limited = HeraldProblem(slug: "rate-limited", message: "", retry: true, status: 429, retryAfter: 7_200)
    #expect(backoff.failed(limited, at: start, random: 0) == 7_200)
    #expect(!backoff.maySend(at: start.addingTimeInterval(7_199)))
    #expect(backoff.maySend(at: start.addingTimeInterval(7_200)))
    backoff.succeeded()
    #expect(backoff.failed(offline, at: start, random: 1) == 30)
}

@Test func keepsAHundredReportsForThirtyDaysAndTheFirstOfAKind() {
    var queue = ReportQueue()
    for number in 0..<120 {
        queue.add(Report(.open, HeraldPush(userInfo: userInfo("ntf_\(number)"))!, at: start.addingTimeInterval(Double(number))))
    }
    #expect(queue.reports.count == 100)
    #expect(queue.reports.first?.notification == "ntf_20")
    queue.add(Report(.open, HeraldPush(userInfo: userInfo("ntf_119"))!, button: "late", at: start.addingTimeInterval(day)))
    queue.add(Report(.received, HeraldPush(userInfo: userInfo("ntf_119"))!, at: start.addingTimeInterval(day)))
    #expect(queue.reports.last?.kind == .received)
    #expect(queue.reports.filter { $0.notification == "ntf_119" }.map(\.button) == [nil, nil])
    #expect(queue.next(at: start.addingTimeInterval(30 * day + 110))?.notification == "ntf_110")
    #expect(queue.next(at: start.addingTimeInterval(31 * day + 1)) == nil)
}

@Test func saysHowLongAReportWaited() {
    let report = Report(.open, push, button: "track", at: start)
    #expect(report.body(at: start.addingTimeInterval(90.9)).ago == 90)
    #expect(report.body(at: start.addingTimeInterval(0.9)).ago == nil)
    // Someone set the clock back.
    #expect(report.body(at: start.addingTimeInterval(-day)).ago == nil)
}

@Test func opensOnlyHttpsAndTheAppsOwnSchemes() {
    let info: [String: Any] = ["CFBundleURLTypes": [["CFBundleURLSchemes": ["shop", "Shop-Beta"]], ["CFBundleURLName": "no schemes"]]]
    for link in ["https://example.com/a", "HTTPS://example.com", "shop://orders/42", "SHOP:orders", "shop-beta://orders"] {
        #expect(HeraldPush.url(link: link, infoDictionary: info)?.absoluteString == link)
    }
    let others = [
        "tel:+491234", "sms:+491234", "facetime://a", "mailto:a@example.com", "http://example.com", "other-app://pay?to=1", "javascript:alert(1)",
        "data:text/html,a", "file:///etc/hosts", "itms-services://?action=download", "App-prefs:root", "/orders/42", "", "shop", "://",
    ]
    for link in others { #expect(HeraldPush.url(link: link, infoDictionary: info) == nil, "\(link)") }
    #expect(HeraldPush.url(link: "shop://orders/42", infoDictionary: nil) == nil)
}

@Test func keepsEachWrittenFileOutOfBackups() throws {
    let excluded = Excluded()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("herald-\(UUID().uuidString)/reports.json")
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    let store = FileStore(url: file, excludeFromBackup: { excluded.add("\($0.path): \(String(decoding: try Data(contentsOf: $0), as: UTF8.self))") })
    for text in ["first", "second"] { try store.write(Data(text.utf8)) }
    #expect(excluded.all == ["\(file.path): first", "\(file.path): second"])
    #expect(try store.read() == Data("second".utf8))
    try FileStore(url: file).write(Data("third".utf8))
    #if canImport(Darwin)
        #expect(try file.resourceValues(forKeys: [.isExcludedFromBackupKey]).isExcludedFromBackup == true)
    #endif
}

private final class Excluded: @unchecked Sendable {
    private let lock = NSLock()
    private var files: [String] = []
    var all: [String] { lock.withLock { files } }
    func add(_ file: String) { lock.withLock { files.append(file) } }
}

@Test func readsAPush() throws {
    let push = try #require(
        HeraldPush(
            userInfo: userInfo(more: [
                "link_to": "/orders/42", "image": "https://example.com/a.png", "receipt": 0, "data": ["order": "42"],
                "aps": ["alert": ["title": "Hello"], "category": "news"],
                "buttons": [
                    ["id": "track", "title": "Track", "link_to": "/track"],
                    ["id": "later", "title": "Later", "opens": false], ["id": "stop", "title": "Stop", "destructive": true],
                    ["title": "without an id"],
                ],
            ])))
    #expect(push.linkTo == "/orders/42")
    #expect(push.data == ["order": "42"])
    #expect(push.image?.host == "example.com")
    #expect(push.category == "news" && push.asksReceipt)
    #expect(push.buttons.map(\.id) == ["track", "later", "stop"])
    #expect(push.buttons.map(\.opens) == [true, false, true])
    #expect(push.buttons.map(\.destructive) == [false, false, true])
    #expect(HeraldPush(userInfo: ["aps": ["alert": "another sender's"]]) == nil)
    #expect(HeraldPush(userInfo: userInfo(more: ["image": "file:///etc/passwd"]))?.image == nil)
    #expect(HeraldPush(userInfo: userInfo(more: ["buttons": "none", "data": 7, "aps": 1]))?.buttons == [])
}

@Test func knowsWhatAPersonDid() throws {
    let push = try #require(
        HeraldPush(
            userInfo: userInfo(more: [
                "link_to": "/home",
                "buttons": [
                    ["id": "track", "title": "Track", "link_to": "/track"], ["id": "open", "title": "Open"],
                    ["id": "later", "title": "Later", "opens": false],
                ],
            ])))
    let did = { HeraldResponse(action: $0, push: push) }
    #expect(did("com.apple.UNNotificationDefaultActionIdentifier") == .opened(link: "/home"))
    #expect(did("com.apple.UNNotificationDismissActionIdentifier") == .dismissed)
    #expect(did("track") == .pressed(button: "track", link: "/track"))
    #expect(did("open") == .pressed(button: "open", link: "/home"))
    #expect(did("later") == .pressed(button: "later", link: nil))
    #expect(did("an-action-of-the-app") == .opened(link: "/home"))
}

@Test func readsTheInfoPlist() {
    let gateway = "https://push.example.com"
    #expect(HeraldSettings(infoDictionary: ["HeraldGateway": gateway, "HeraldProject": "prj_1"])?.gateway.absoluteString == gateway)
    for wrong in [nil, [:], ["HeraldGateway": gateway], ["HeraldGateway": "push.example.com", "HeraldProject": "prj_1"],
        ["HeraldGateway": gateway, "HeraldProject": "1"]] as [[String: Any]?]
    { #expect(HeraldSettings(infoDictionary: wrong) == nil) }
    let profile = { (name: String) in Data("…<key>aps-environment</key>\n\t<string>\(name)</string>…".utf8) + Data([0xff, 0xfe]) }
    #expect(HeraldSettings.environment(provisioningProfile: profile("development")) == .sandbox)
    #expect(HeraldSettings.environment(provisioningProfile: profile("production")) == .production)
    #expect(HeraldSettings.environment(provisioningProfile: nil) == .production)
    let service = ["NSExtension": ["NSExtensionPointIdentifier": "com.apple.usernotifications.service"]] as [String: Any]
    #expect(HeraldSettings.capabilities(extensions: [["CFBundleName": "Widget"], service]) == [])
    let ours = service.merging(["HeraldGateway": gateway]) { $1 }
    #expect(HeraldSettings.capabilities(extensions: [ours]) == ["buttons", "receipts"])
}

@Test func datesOfLiveActivitiesCountFrom1970() throws {
    struct State: Codable, Equatable { @UnixDate var arrival: Date }
    let json = Data(#"{"arrival":1800000000.5}"#.utf8)
    let state = try JSONDecoder().decode(State.self, from: json)
    #expect(state.arrival == start.addingTimeInterval(0.5))
    #expect(try JSONEncoder().encode(state) == json)
}

@Test func valuesKeepTheirJSONForm() throws {
    let value: JSONValue = ["plan": "pro", "level": 3, "share": 0.5, "beta": true, "none": nil, "tags": ["a", 1]]
    let data = try JSONEncoder().encode(value)
    #expect(try JSONDecoder().decode(JSONValue.self, from: data) == value)
    #expect(String(decoding: data, as: UTF8.self).contains(#""level":3"#))
}

@Suite struct ActivityRules {
    private func herald(_ activity: String) throws -> HeraldActivity {
        let json = #"{"activity":"\#(activity)","project_id":"prj_1","notification_id":"ntf_1","token":"k1.x"}"#
        return try JSONDecoder().decode(HeraldActivity.self, from: Data(json.utf8))
    }

    @Test func aSecondCardOfAnActivityEnds() throws {
        let cards: [HeraldActivity.Card] = [
            ("a", try herald("order-1")), ("b", nil), ("c", try herald("order-2")), ("d", try herald("order-1")), ("e", nil),
        ]
        #expect(HeraldActivity.repeated(cards) == ["d"])
    }

    @Test func theOpenIsThatOfTheStart() throws {
        let push = HeraldPush(try herald("order-1"))
        #expect(push.notification == "ntf_1")
        #expect(push.token == "k1.x")
    }

    @Test func anotherUserGetsNoActivityOfTheLastOne() {
        var state = DeviceState(project: "prj_1")
        state.tokens = ["activity/order-1": .init(token: "aa"), "liveactivity/Order": .init(token: "bb")]
        state.forgetActivities()
        #expect(state.tokens?.keys.sorted() == ["liveactivity/Order"])
    }
}
