import Herald
import SwiftUI

@main
struct ExampleApp: App {
    @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate

    var body: some Scene {
        WindowGroup {
            ContentView().onOpenURL { link in
                if #available(iOS 16.2, *) { Task { await Orders.open(link) } }
            }
        }
    }
}

struct ContentView: View {
    @State private var status: HeraldStatus?
    @State private var userToken = ""
    @State private var path = "/"

    var body: some View {
        Form {
            Section("This phone") {
                Text(status.map(Device.words) ?? "Starting")
                Text("Last link: \(path)")
                Button("Notify me") { Task { await HeraldAppDelegate.askForPermission() } }
            }
            Section("User") {
                TextField("User token from your backend", text: $userToken)
                Button("Log in") { run { await Device.logIn(userToken) } }
                Button("Log out") { run { await Device.logOut() } }
            }
            Section("Topics") {
                Toggle("News", isOn: Binding(
                    get: { status?.topics.contains("news") ?? false },
                    set: { subscribed in run { await Device.set("news", subscribed: subscribed) } }))
            }
        }
        .task { status = await HeraldClient.shared.settle() }
        .task { for await link in AppDelegate.path.stream { path = link } }
    }

    private func run(_ call: @escaping @MainActor () async -> HeraldStatus) {
        Task { status = await call() }
    }
}
