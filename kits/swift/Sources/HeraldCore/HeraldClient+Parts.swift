import Foundation

/// The topics of a device. Call it as `herald.topics`.
public struct HeraldTopics: Sendable {
    let client: HeraldClient

    /// Subscribes to a topic that exists in the project.
    @discardableResult
    public func add(_ name: String) async -> HeraldStatus {
        await client.change { if $0.topics[name] != .subscribed { $0.topics[name] = .add } }
    }

    @discardableResult
    public func remove(_ name: String) async -> HeraldStatus {
        await client.change { $0.topics[name] = .remove }
    }
}

/// The tokens of a device beside its device token. Call it as `herald.tokens`.
public struct HeraldTokens: Sendable {
    let client: HeraldClient

    /// Call it with the token that iOS issued for a push type, at every start and for each new one.
    /// - Parameter type: `voip`, `complication`, `widgets`, `location`, `fileprovider`, `pushtotalk`, or `controls/` and the control's kind.
    @discardableResult
    public func set(_ token: Data, for type: String) async -> HeraldStatus {
        let token = hexadecimal(token)
        return await client.change {
            guard $0.tokens?[type]?.token != token else { return }
            $0.tokens = ($0.tokens ?? [:]).merging([type: DeviceState.PushTypeToken(token: token)]) { $1 }
        }
    }

    @discardableResult
    public func remove(_ type: String) async -> HeraldStatus {
        await client.change { $0.tokens = ($0.tokens ?? [:]).merging([type: DeviceState.PushTypeToken()]) { $1 } }
    }
}

func hexadecimal(_ token: Data) -> String { token.map { String(format: "%02x", $0) }.joined() }
