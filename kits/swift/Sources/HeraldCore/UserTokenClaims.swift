import Foundation

/// The claims of a user token. Herald verifies the token, the kit does not.
struct UserTokenClaims: Decodable, Equatable, Sendable {
    let sub: String
    let iat: Int

    /// Nil if the text is no JWT.
    init?(_ userToken: String) {
        let parts = userToken.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let base64 = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        let padding = String(repeating: "=", count: (4 - base64.count % 4) % 4)
        guard let data = Data(base64Encoded: base64 + padding),
            let claims = try? JSONDecoder().decode(Self.self, from: data)
        else { return nil }
        self = claims
    }
}
