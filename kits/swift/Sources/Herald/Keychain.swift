import Foundation
import HeraldCore
import Security

/// The device's state with its credential. It stays on this phone, out of backups, and survives a reinstallation.
struct Keychain: HeraldStore {
    struct Refused: Error { let status: OSStatus }

    private static func query(_ more: [String: Any] = [:]) -> CFDictionary {
        let item = [kSecClass as String: kSecClassGenericPassword as Any, kSecAttrService as String: "herald"]
        return item.merging(more) { $1 } as CFDictionary
    }

    func read() throws -> Data? {
        var found: CFTypeRef?
        let status = SecItemCopyMatching(Self.query([kSecReturnData as String: true]), &found)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess else { throw Refused(status: status) }
        return found as? Data
    }

    func write(_ data: Data) throws {
        let value: [String: Any] = [
            kSecValueData as String: data,
            // Pushes start the app while the phone is locked.
            kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        var status = SecItemUpdate(Self.query(), value as CFDictionary)
        if status == errSecItemNotFound { status = SecItemAdd(Self.query(value), nil) }
        guard status == errSecSuccess else { throw Refused(status: status) }
    }
}
