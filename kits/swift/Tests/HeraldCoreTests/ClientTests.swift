import Foundation
import Testing

@testable import HeraldCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `{"sub":"u-1","iat":1}`
private let userToken = "e30.eyJzdWIiOiJ1LTEiLCJpYXQiOjF9.signature"
private let deviceToken = Data([0, 1, 0xab])
private let push = HeraldPush(userInfo: userInfo())!

private func registered(_ device: String = "dev_1") -> Network.Answer {
    Network.Answer(status: 201, body: #"{"data":{"id":"\#(device)"},"credential":"hdc_\#(device)"}"#)
}

/// Answers like Herald that accepts everything.
private let accepting: @Sendable (URLRequest) async throws -> Network.Answer? = { request in
    request.url!.path.hasSuffix("/identification") ? registered() : Network.Answer()
}

/// An app installation.
private struct Phone {
    let network = Network(accepting)
    let clock = TestClock()
    let store = MemoryStore()
    let reports = MemoryStore()

    /// The app, started: it knows what is stored.
    func app() -> HeraldClient {
        HeraldClient(
            settings: HeraldSettings(gateway: URL(string: "https://push.example.com/")!, project: "prj_1"), store: store,
            reports: reports, transport: network, clock: clock)
    }
}

@Test func storesAChangeBeforeItCallsHerald() async {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    await phone.network.answer { [store = phone.store, reports = phone.reports] request in
        let stored = request.url!.path.hasSuffix("open") ? reports.text.contains("ntf_1") : store.text.contains("news")
        return Network.Answer(status: stored ? 204 : 400)
    }
    #expect(await app.topics.add("news").topics == ["news"])
    #expect(await app.open(push).problem == nil)
    #expect(await phone.network.calls == ["PUT /identification", "PUT /devices/dev_1/topics/news", "PUT /notifications/ntf_1/open"])
    #expect(await phone.network.bodies[0].contains(#""identifier":"0001ab""#))
}

@Test func keepsUserTokensInMemory() async {
    let phone = Phone()
    let app = phone.app()
    await phone.network.goOffline()
    await app.register(token: deviceToken)
    #expect(await app.login(userToken: userToken).pending)
    #expect(!phone.store.text.contains("signature"))
    await phone.network.answer(accepting)
    #expect(await app.settle().user == "u-1")
    #expect(!phone.store.text.contains("signature"))
    // The same log-in at the next start asks nothing of Herald.
    let calls = await phone.network.calls.count
    #expect(await phone.app().login(userToken: userToken).user == "u-1")
    #expect(await phone.network.calls.count == calls)
    #expect(await app.login(userToken: "no token").problem?.slug == "user-token-invalid")
}

@Test func retriesByItselfAndNeverBeforeRetryAfter() async throws {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    await phone.network.answer { _ in Network.Answer(status: 503, headers: ["Retry-After": "100"]) }
    let status = await app.topics.add("news")
    #expect(status.problem?.status == 503 && status.pending)
    await app.open(push)
    #expect(await phone.network.calls.count == 3)
    // Calls of the app wait too, also in the next process.
    await app.settle()
    await phone.app().settle()
    #expect(await phone.network.calls.count == 3)
    #expect(phone.clock.sleeping.allSatisfy { $0 == 100 })
    await phone.network.answer(accepting)
    phone.clock.advance(100)
    try await eventually("sent by itself") { await !app.status.pending }
    #expect(await app.status.topics == ["news"])
    #expect(await app.status.problem == nil)
}

@Test func waitsBetweenRetriesWithoutAnAnswer() async throws {
    let phone = Phone()
    let app = phone.app()
    await phone.network.goOffline()
    #expect(await app.register(token: deviceToken).problem?.slug == "offline")
    for delay in [30.0, 60, 120] {
        try await eventually("sleeps \(delay) s") { phone.clock.sleeping == [delay] }
        phone.clock.advance(delay)
    }
    // A call of the app does not wait.
    await phone.network.answer(accepting)
    #expect(await app.settle().device == "dev_1")
}

@Test func dropsWhatHeraldRefusesAndSendsTheRest() async {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    await phone.network.answer { request in
        request.url!.path.contains("no-such")
            ? Network.Answer(status: 404, body: #"{"type":"https://h/docs/errors#topic-not-found","errors":["topic: no-such not found"]}"#)
            : Network.Answer()
    }
    _ = await app.topics.add("a-no-such")
    let status = await app.topics.add("news")
    #expect(status.topics == ["news"] && !status.pending)
    #expect(await app.topics.add("no-such").problem?.slug == "topic-not-found")
    #expect(await app.status.problem?.message == "topic: no-such not found")
    await phone.network.answer { _ in Network.Answer(status: 403, body: #"{"type":"x#open-token-invalid"}"#) }
    let refused = await app.open(push)
    #expect(refused.problem?.slug == "open-token-invalid" && !refused.pending)
}

@Test func registersAgainWhenHeraldForgotTheDevice() async {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    await app.login(userToken: userToken)
    await app.topics.add("news")
    await phone.network.answer { request in
        if request.url!.path.hasSuffix("/identification") {
            return request.value(forHTTPHeaderField: "Authorization") == nil ? registered("dev_2") : Network.Answer(status: 401)
        }
        return Network.Answer(status: request.url!.path.contains("dev_1") ? 401 : 204)
    }
    let status = await app.topics.add("sport")
    #expect(status == HeraldStatus(device: "dev_2", user: "u-1", topics: ["news", "sport"], pending: false, problem: nil))
    // A gateway that refuses every credential is not asked for ever.
    await phone.network.answer { _ in Network.Answer(status: 401) }
    #expect(await app.topics.remove("news").problem?.status == 401)
}

@Test func waitsForALockedStorage() async throws {
    let phone = Phone()
    await phone.app().register(token: deviceToken)
    phone.store.setLocked(true)
    let app = phone.app()
    let status = await app.topics.add("news")
    #expect(status.problem?.slug == "storage" && status.pending)
    #expect(await phone.network.calls == ["PUT /identification"])
    phone.store.setLocked(false)
    let after = await app.settle()
    #expect(after.device == "dev_1" && after.topics == ["news"] && after.problem == nil)
}

@Test func aLogOutDuringALogInWins() async throws {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    await phone.network.answer { request in
        if request.httpMethod == "PATCH" {
            Task { await app.logout() }
            try await eventually("wants to log out") { await app.state?.isLoggingOut == true }
        }
        return Network.Answer()
    }
    let status = await app.login(userToken: userToken)
    #expect(status.user == nil && !status.pending)
    #expect(await phone.network.calls.suffix(2) == ["PATCH /devices/dev_1", "DELETE /devices/dev_1/user"])
}

@Test func keepsTheTokensOfPushTypes() async {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    #expect(await app.tokens.set(Data([0xca]), for: "voip").pending == false)
    await app.tokens.set(Data([0xca]), for: "voip")
    await app.tokens.set(Data([0xcb]), for: "controls/garage-door")
    #expect(await phone.network.calls.dropFirst() == ["PUT /devices/dev_1/tokens/voip", "PUT /devices/dev_1/tokens/controls/garage-door"])
    #expect(await phone.network.bodies[1].contains(#""token":"ca""#))
    // Another device: its credential was deleted at Herald.
    await phone.network.answer { request in
        if request.url!.path.hasSuffix("/identification") { return registered("dev_2") }
        return Network.Answer(status: request.url!.path.contains("dev_1") ? 401 : 204)
    }
    #expect(await app.tokens.remove("controls/garage-door").device == "dev_2")
    #expect(await phone.network.calls.last == "PUT /devices/dev_2/tokens/voip")
    #expect(await app.status.pending == false)
}

@Test(.timeLimit(.minutes(1)))
func reportsWhatAPersonDid() async {
    let phone = Phone()
    let app = phone.app()
    let push = HeraldPush(userInfo: userInfo(more: ["buttons": [["id": "track", "title": "Track"]]]))!
    await app.received(push)
    await app.report(HeraldResponse(action: "track", push: push), push)
    await app.report(.dismissed, push)
    let calls = await phone.network.calls
    #expect(calls == ["received", "open", "dismissed"].map { "PUT /notifications/ntf_1/\($0)" })
    let bodies = await phone.network.bodies
    #expect(bodies[1].contains(#""button":"track""#) && !bodies[2].contains("button"))
}

@Test func registersAnUnchangedDeviceOnceADay() async {
    let phone = Phone()
    await phone.app().register(token: deviceToken)
    await phone.app().register(token: deviceToken)
    #expect(await phone.network.calls.count == 1)
    phone.clock.advance(86_400)
    await phone.app().register(token: deviceToken)
    #expect(await phone.network.calls.count == 2)
    await phone.app().register(token: Data([9]))
    #expect(await phone.network.bodies.last?.contains(#""previous_identifier":"0001ab""#) == true)
}

@Test func asksForAProofWhenTheCredentialIsLost() async {
    let phone = Phone()
    let known = Network.Answer(status: 200, body: #"{"data":{"id":"dev_1"}}"#)
    await phone.network.answer { _ in known }
    let app = phone.app()
    #expect(await app.register(token: deviceToken).problem?.slug == "no-credential")
    // Not its user's.
    #expect(await app.login(userToken: userToken).problem?.slug == "no-credential")
    #expect(await phone.network.bodies.last?.contains("user_token") == true)
    await phone.network.answer(accepting)
    #expect(await app.login(userToken: userToken).user == "u-1")
    #expect(phone.store.text.contains("hdc_dev_1"))
}

@Test func aPassWithoutACallKeepsTheRefusal() async {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    await phone.network.answer { _ in Network.Answer(status: 403, body: #"{"type":"x#user-token-invalid"}"#) }
    #expect(await app.login(userToken: userToken).problem?.slug == "user-token-invalid")
    #expect(await app.settle().problem?.slug == "user-token-invalid")
    await phone.network.answer(accepting)
    #expect(await app.topics.add("news").problem == nil)
}

@Test func sendsWhatWasWantedWhileReportsWereSent() async throws {
    let phone = Phone()
    let app = phone.app()
    await app.register(token: deviceToken)
    await phone.network.answer { request in
        // The pass that runs has sent its changes already.
        if request.url!.path.hasSuffix("open") {
            Task { await app.topics.add("news") }
            try await eventually("wants a topic") { await app.state?.topics["news"] == .add }
        }
        return Network.Answer()
    }
    await app.open(push)
    try await eventually("sent by itself") { await !app.status.pending }
    #expect(await app.status.topics == ["news"])
}

@Test func asksForPreferencesOneAfterTheOther() async {
    let phone = Phone()
    let app = phone.app()
    #expect(await app.preferences.get().problem?.slug == "not-registered")
    #expect(await app.credential == nil)
    await app.register(token: deviceToken)
    #expect(await app.credential == "hdc_dev_1")
    let chosen = Choices()
    await phone.network.answer { request in
        if request.httpMethod == "PUT" { await chosen.put(request.httpBody!) }
        return Network.Answer(status: 200, body: await chosen.answer)
    }
    async let one = app.preferences.set(["offers": false])
    async let other = app.preferences.set(["tips": false])
    _ = await (one, other)
    #expect(await app.preferences.get().kinds.allSatisfy { !$0.on && $0.setBy == "device" })

    await phone.network.answer { _ in Network.Answer(status: 503, headers: ["Retry-After": "100"]) }
    #expect(await app.preferences.get().problem?.status == 503)
    let calls = await phone.network.calls.count
    #expect(await app.preferences.get().problem == HeraldProblem(
        slug: "retry-later", message: "Herald asked to wait: try again in 100 s", retry: true))
    #expect(await phone.network.calls.count == calls)
}

/// Two kinds at a Herald, and what a device has chosen.
private actor Choices {
    private var chosen: [String: Bool] = [:]

    func put(_ body: Data) {
        let body = try! JSONDecoder().decode([String: [String: [String: Bool]]].self, from: body)
        chosen = body["preferences"]!["kinds"]!
    }

    var answer: String {
        let kinds = ["offers", "tips"].map { kind in
            let by = chosen[kind] == nil ? "default" : "device"
            return #"{"kind":"\#(kind)","title":"Title","on":\#(chosen[kind] ?? true),"critical":false,"set_by":"\#(by)"}"#
        }
        return #"{"data":{"kinds":[\#(kinds.joined(separator: ","))]}}"#
    }
}
