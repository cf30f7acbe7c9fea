import Foundation

/// The calls that bring Herald to what this installation wants.
extension HeraldClient {
    /// Makes one call after the other. Each step looks at the newest state, so that a change that is made meanwhile is not lost.
    /// - Returns: the seconds until the next attempt; nil if none is needed.
    func sendChanges() async -> TimeInterval? {
        var hasForgotten = false
        while let state, let step = state.nextStep(registration, userToken: pendingToken, at: clock.now()) {
            guard state.backoff.maySend(at: clock.now()) else { return state.backoff.remaining(at: clock.now()) }
            hasCalled = true
            do {
                try await perform(step, state)
                update { $0.backoff.succeeded() }
            } catch {
                if error.retry {
                    problem = error
                    var backoff = state.backoff
                    let again = backoff.failed(error, at: clock.now(), random: clock.random())
                    update { [backoff] in $0.backoff = backoff }
                    return again
                }
                if error.isUnknownDevice && !hasForgotten {
                    hasForgotten = true
                    update { $0.forgetDevice() }
                } else {
                    problem = error
                    drop(step)
                }
            }
        }
        if state == nil { return 30 }
        return nil
    }

    private func perform(_ step: DeviceState.Step, _ state: DeviceState) async throws(HeraldProblem) {
        let device = ["devices", state.device ?? ""]
        let credential = state.credential
        switch step {
        case .register:
            try await register(state)
        case .logOut:
            try await gateway.call("DELETE", device + ["user"], credential: credential)
            drop(step)
        case .logIn(let userToken):
            let body = LoginBody(device: LoginBody.Device(user_token: userToken))
            try await gateway.call("PATCH", device, body: body, credential: credential)
            guard pendingToken == userToken else { return }
            pendingToken = nil
            let claims = UserTokenClaims(userToken)
            update {
                if $0.user != claims?.sub { $0.forgetActivities() }
                $0.user = claims?.sub
                $0.userTokenIat = claims?.iat
            }
        case .add(let name):
            try await gateway.call("PUT", device + ["topics", name], credential: credential)
            update { if $0.topics[name] == .add { $0.topics[name] = .subscribed } }
        case .remove(let name):
            try await gateway.call("DELETE", device + ["topics", name], credential: credential)
            drop(step)
        case .putToken(let type, let token):
            let body = PushTypeTokenBody(token: .init(token: token, environment: settings.environment))
            try await gateway.call("PUT", device + ["tokens"] + parts(type), body: body, credential: credential)
            update { if $0.tokens?[type]?.token == token { $0.tokens?[type]?.isSent = true } }
        case .deleteToken(let type):
            try await gateway.call("DELETE", device + ["tokens"] + parts(type), credential: credential)
            drop(step)
        }
    }

    private func parts(_ type: String) -> [String] { type.split(separator: "/").map(String.init) }

    /// What a step wanted is done, or refused: the others must not wait for it.
    private func drop(_ step: DeviceState.Step) {
        switch step {
        case .register: isRegistrationRefused = true
        case .logOut: update { $0.isLoggingOut = false }
        case .logIn(let userToken): if pendingToken == userToken { pendingToken = nil }
        case .add(let name): update { if $0.topics[name] == .add { $0.topics[name] = nil } }
        case .remove(let name): update { if $0.topics[name] == .remove { $0.topics[name] = nil } }
        case .putToken(let type, let token): update { if $0.tokens?[type]?.token == token { $0.tokens?[type] = nil } }
        case .deleteToken(let type): update { if $0.tokens?[type]?.token == .some(nil) { $0.tokens?[type] = nil } }
        }
    }

    private func register(_ state: DeviceState) async throws(HeraldProblem) {
        guard let wanted = registration else { return }
        let previous = state.registered?.identifier
        // A device that lost its credential, or was imported, gets one by a proof of its user.
        let proof = state.credential == nil ? pendingToken : nil
        let body = IdentificationBody(
            registration: wanted, previousIdentifier: previous == wanted.identifier ? nil : previous, userToken: proof)
        let data = try await gateway.call("PUT", ["identification"], body: body, credential: state.credential)
        let answer = try gateway.decode(IdentificationAnswer.self, data)
        let isNew = answer.data.id != state.device
        let now = clock.now()
        update { $0.apply(answer, to: wanted, at: now) }
        if isNew, pendingToken == nil, let lastToken, UserTokenClaims(lastToken)?.sub == state.user { pendingToken = lastToken }
        guard self.state?.credential == nil else { return }
        if proof != nil { pendingToken = nil }
        problem = HeraldProblem(
            slug: "no-credential",
            message: "Herald knows this push token, and its credential is lost: log the device's user in, or let your backend replace it",
            retry: false)
    }
}

/// `PUT /devices/{id}/tokens/{type}`.
private struct PushTypeTokenBody: Encodable, Sendable {
    struct Token: Encodable, Sendable {
        let token: String
        let environment: HeraldSettings.Environment
    }

    let token: Token
}

/// `PATCH /devices/{id}`.
private struct LoginBody: Encodable, Sendable {
    struct Device: Encodable, Sendable { let user_token: String }

    let device: Device
}
