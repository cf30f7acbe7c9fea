import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Calls Herald, and turns every failure into a ``HeraldProblem``.
struct HeraldGateway: Sendable {
    /// A call without an answer fails after this time, in seconds.
    static let timeout: TimeInterval = 20

    let url: URL
    let transport: any HeraldTransport
    let clock: any HeraldClock

    /// - Parameter path: below `/api/v1`, in parts that are encoded here.
    /// - Returns: the body, empty for a 204.
    @discardableResult
    func call(
        _ method: String, _ path: [String], body: (any Encodable & Sendable)? = nil, credential: String? = nil
    ) async throws(HeraldProblem) -> Data {
        var request = URLRequest(url: address(path), timeoutInterval: Self.timeout)
        request.httpMethod = method
        if let credential { request.setValue("Bearer \(credential)", forHTTPHeaderField: "Authorization") }
        if let body {
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = try encoded(body)
        }
        let (data, response) = try await answer(request)
        if (200..<300).contains(response.statusCode) { return data }
        throw problem(response, data)
    }

    func decode<Answer: Decodable>(_ type: Answer.Type, _ data: Data) throws(HeraldProblem) -> Answer {
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            // A captive portal answers 200 with a page.
            throw HeraldProblem(slug: "failed", message: "the answer is not Herald's", retry: true, status: 200)
        }
    }

    private func address(_ path: [String]) -> URL {
        var unreserved = CharacterSet(charactersIn: "-._~")
        unreserved.formUnion(CharacterSet(charactersIn: "0"..."9"))
        unreserved.formUnion(CharacterSet(charactersIn: "a"..."z"))
        unreserved.formUnion(CharacterSet(charactersIn: "A"..."Z"))
        let parts = path.map { $0.addingPercentEncoding(withAllowedCharacters: unreserved) ?? "" }
        let base = url.absoluteString.hasSuffix("/") ? String(url.absoluteString.dropLast()) : url.absoluteString
        return URL(string: "\(base)/api/v1/\(parts.joined(separator: "/"))") ?? url
    }

    private func encoded(_ body: any Encodable) throws(HeraldProblem) -> Data {
        do {
            return try JSONEncoder().encode(body)
        } catch {
            throw HeraldProblem(slug: "failed", message: "the request has no JSON form: \(error)", retry: false)
        }
    }

    private func answer(_ request: URLRequest) async throws(HeraldProblem) -> (Data, HTTPURLResponse) {
        do {
            return try await transport.send(request)
        } catch {
            throw HeraldProblem(slug: "offline", message: "Herald did not answer: \(error.localizedDescription)", retry: true)
        }
    }

    private struct Refusal: Decodable {
        let type: String?
        let errors: [String]?
    }

    private func problem(_ response: HTTPURLResponse, _ data: Data) -> HeraldProblem {
        let refusal = try? JSONDecoder().decode(Refusal.self, from: data)
        let status = response.statusCode
        return HeraldProblem(
            slug: refusal?.type?.split(separator: "#").last.map(String.init) ?? "failed",
            message: refusal?.errors?.joined(separator: "; ") ?? "Herald answered \(status)",
            // A redirect is not Herald's: a hotel's network asks for a log-in first, or the address is wrong.
            retry: status < 400 || status == 408 || status == 429 || status >= 500,
            status: status,
            retryAfter: response.value(forHTTPHeaderField: "Retry-After").flatMap(seconds)
        )
    }

    /// Of a `Retry-After`: seconds, or the date that a proxy may send.
    private func seconds(_ text: String) -> TimeInterval? {
        if let seconds = TimeInterval(text), seconds >= 0 { return seconds }
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
        return format.date(from: text).map { max(0, $0.timeIntervalSince(clock.now())) }
    }
}
