import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The work of a notification service extension: reports the receipt, loads the image, and registers the buttons.
public struct NotificationService: Sendable {
    /// The notification is shown after this time, in seconds, even if Herald has not confirmed the receipt.
    static let receiptWait: TimeInterval = 2
    /// https://developer.apple.com/documentation/usernotifications/unnotificationattachment: an image may have 10 MB.
    static let maxImageBytes = 10_000_000
    /// The system shows the notification after 30 seconds in any case.
    private static let imageTimeout: TimeInterval = 20
    /// The types that iOS shows, and the suffix by which it knows them.
    private static let suffixes = ["image/jpeg": "jpg", "image/png": "png", "image/gif": "gif"]

    private let reports: ReportSender
    private let categories: CategoryRegistrar
    private let transport: any HeraldTransport
    private let clock: any HeraldClock

    /// - Parameter categoryStore: for the order in which categories were used.
    public init(
        reports: ReportSender, categories: any HeraldCategories, categoryStore: any HeraldStore,
        transport: any HeraldTransport = URLSessionTransport(), clock: any HeraldClock = SystemClock()
    ) {
        self.reports = reports
        self.categories = CategoryRegistrar(categories: categories, store: categoryStore, clock: clock)
        self.transport = transport
        self.clock = clock
    }

    /// Returns when the notification may be shown. Never throws: a notification without its image is better than none.
    /// - Returns: the file of the image to attach, which the system moves away.
    public func prepare(_ push: HeraldPush) async -> URL? {
        async let receipt: Void = reportReceipt(push)
        async let buttons: Void = registerCategory(push)
        let image = await loadImage(push)
        _ = await (receipt, buttons)
        return image
    }

    /// The report is stored first: what cannot be sent within the wait is sent beside the next push.
    private func reportReceipt(_ push: HeraldPush) async {
        guard push.asksReceipt else { return }
        await reports.add(.received, push)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        // Goes on after the wait: while the image loads, Herald may still answer.
        Task { [reports] in
            _ = await reports.send()
            end.finish()
        }
        let waiting = Task { [clock] in
            try? await clock.sleep(seconds: Self.receiptWait)
            end.finish()
        }
        for await _ in ended {}
        waiting.cancel()
    }

    private func registerCategory(_ push: HeraldPush) async {
        guard let category = HeraldCategory(push) else { return }
        await categories.register(category)
    }

    private func loadImage(_ push: HeraldPush) async -> URL? {
        guard let image = push.image,
            let (file, response) = try? await transport.download(URLRequest(url: image, timeoutInterval: Self.imageTimeout))
        else { return nil }
        let files = FileManager.default
        let bytes = (try? file.resourceValues(forKeys: [.fileSizeKey]))?.fileSize ?? 0
        guard response.statusCode == 200, bytes <= Self.maxImageBytes,
            let suffix = response.mimeType.flatMap({ Self.suffixes[$0.lowercased()] })
        else {
            try? files.removeItem(at: file)
            return nil
        }
        let attached = file.deletingPathExtension().appendingPathExtension(suffix)
        return (try? files.moveItem(at: file, to: attached)) == nil ? nil : attached
    }
}
