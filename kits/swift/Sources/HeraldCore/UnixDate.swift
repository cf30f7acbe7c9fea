import Foundation

/// A date in the state of a Live Activity, as seconds since 1970. A plain `Date` is decoded as seconds since 2001.
///
/// ```swift
/// struct ContentState: Codable, Hashable { @UnixDate var arrival: Date }
/// ```
@propertyWrapper
public struct UnixDate: Codable, Hashable, Sendable {
    public var wrappedValue: Date

    public init(wrappedValue: Date) { self.wrappedValue = wrappedValue }

    public init(from decoder: any Decoder) throws {
        wrappedValue = Date(timeIntervalSince1970: try decoder.singleValueContainer().decode(Double.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue.timeIntervalSince1970)
    }
}
