import Foundation
import Testing

@testable import HeraldCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private let gateway = URL(string: "https://push.example.com")!
private func pushWith(_ button: String, more: [String: Any] = [:]) -> HeraldPush {
    let fields = ["buttons": [["id": button, "title": "Track"]], "aps": ["category": "herald.\(button)"]] as [String: Any]
    return HeraldPush(userInfo: userInfo(more: fields.merging(more) { $1 }))!
}

private struct Extension {
    let network: Network
    var clock: any HeraldClock = SystemClock()
    var categories = Categories()
    var reports = MemoryStore()
    let used = MemoryStore()

    func prepare(_ push: HeraldPush) async -> URL? {
        let sender = ReportSender(gateway: gateway, store: reports, transport: network, clock: clock)
        let service = NotificationService(
            reports: sender, categories: categories, categoryStore: used, transport: network, clock: clock)
        return await service.prepare(push)
    }
}

@Test func reportsTheReceiptRegistersTheButtonsAndLoadsTheImage() async throws {
    let service = Extension(network: Network { request in
        request.httpMethod == "PUT"
            ? Network.Answer() : Network.Answer(status: 200, body: "picture", headers: ["Content-Type": "image/png"])
    })
    let push = pushWith("track", more: ["receipt": 0, "image": "https://example.com/a?size=2"])
    let image = try #require(await service.prepare(push))
    #expect(await service.network.calls == ["PUT /notifications/ntf_1/received"])
    #expect(image.pathExtension == "png")
    #expect(try String(contentsOf: image, encoding: .utf8) == "picture")
    try FileManager.default.removeItem(at: image)
    #expect(await service.categories.registered == ["herald.track"])
    #expect(!service.reports.text.contains("ntf_1"))
}

@Test func showsTheNotificationTwoSecondsAfterAReceiptThatHeraldDoesNotAnswer() async throws {
    let clock = TestClock()
    let (silence, _) = AsyncStream.makeStream(of: Void.self)
    let service = Extension(network: Network { _ in
        for await _ in silence {}
        throw URLError(.timedOut)
    }, clock: clock)
    let push = HeraldPush(userInfo: userInfo(more: ["receipt": 0, "aps": ["category": "news"]]))!
    let shown = Task { await service.prepare(push) }
    try await eventually("waits") { clock.sleeping == [2] }
    clock.advance(2)
    #expect(await shown.value == nil)
    // Stored: the next push sends it.
    #expect(service.reports.text.contains("ntf_1"))
    let next = Extension(network: Network { _ in Network.Answer() }, reports: service.reports)
    _ = await next.prepare(HeraldPush(userInfo: userInfo("ntf_2", more: ["receipt": 0, "aps": ["category": "news"]]))!)
    #expect(await next.network.calls == ["PUT /notifications/ntf_1/received", "PUT /notifications/ntf_2/received"])
}

@Test(arguments: [(404, "image/png", 4), (200, "text/html", 4), (200, "image/png", 10_000_001)])
func showsTheNotificationWithoutAnImageThatIsNone(_ status: Int, _ type: String, _ bytes: Int) async {
    let service = Extension(network: Network { _ in
        Network.Answer(status: status, body: String(repeating: "a", count: bytes), headers: ["Content-Type": type])
    })
    let push = HeraldPush(userInfo: userInfo(more: ["image": "https://example.com/a.png"]))!
    #expect(await service.prepare(push) == nil)
}

@Test func leavesCategoriesAloneThatItDoesNotNeed() async {
    let service = Extension(network: Network())
    _ = await service.prepare(HeraldPush(userInfo: userInfo())!)
    _ = await service.prepare(pushWith("track", more: ["aps": ["category": "news"]]))
    #expect(await service.categories.registered == [])
}

@Test func keepsTheCategoriesOfTheAppAndThe64ThatWereUsedLast() async {
    let categories = Categories(["news"], readsUntilThere: 0)
    let service = Extension(network: Network(), categories: categories)
    for number in 0..<70 { _ = await service.prepare(pushWith("button-\(number)")) }
    // Used again, so that a newer one goes before it.
    _ = await service.prepare(pushWith("button-6"))
    _ = await service.prepare(pushWith("one-more"))
    let kept = await categories.registered
    #expect(kept.count == 65 && kept.contains("news"))
    #expect(kept.contains("herald.button-6") && !kept.contains("herald.button-7"))
}

@Test func showsTheNotificationOfASystemThatNeverHasTheCategory() async {
    let service = Extension(network: Network(), categories: Categories(readsUntilThere: .max))
    #expect(await service.prepare(pushWith("slow")) == nil)
}

@Test func registersCategoriesOneAfterTheOther() async {
    let service = Extension(network: Network(), categories: Categories(readsUntilThere: 0))
    let sender = ReportSender(gateway: gateway, store: service.reports)
    let shared = NotificationService(reports: sender, categories: service.categories, categoryStore: service.used)
    await withTaskGroup(of: Void.self) { group in
        for number in 0..<10 { group.addTask { _ = await shared.prepare(pushWith("button-\(number)")) } }
    }
    #expect(await service.categories.registered.count == 10)
}
