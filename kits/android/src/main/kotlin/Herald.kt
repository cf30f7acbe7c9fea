package io.herald

import android.content.Context
import android.content.Intent
import android.content.pm.PackageManager
import android.os.Bundle
import android.util.Log
import java.io.File
import java.util.Locale
import java.util.TimeZone
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArraySet
import java.util.concurrent.Executors
import java.util.concurrent.Future
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random
import org.json.JSONArray
import org.json.JSONObject

/**
 * This app's device at Herald. Each call stores what is wanted and returns; a thread of the kit then sends it. No call throws: what
 * Herald refused is in [status]. What cannot be sent now is sent when there is a network again, also if the app is not running.
 *
 * The manifest names the gateway and the project: `<meta-data android:name="io.herald.gateway" android:value="https://push.example.com" />`
 * and `io.herald.project`.
 */
class Herald internal constructor(private val context: Context, sealer: Sealer, private val now: () -> Long = System::currentTimeMillis) {
    private val settings: Bundle = context.packageManager.getApplicationInfo(context.packageName, PackageManager.GET_META_DATA).metaData ?: Bundle()
    private val registration = object : Registration {
        override val gateway = setting("io.herald.gateway").trimEnd('/')
        override val project = setting("io.herald.project")

        override fun data(): JSONObject = JSONObject()
            .put("capabilities", JSONArray(listOf("draws", "receipts", "buttons")))
            .put("identifiers", JSONObject()
                .put("current_locale", Locale.getDefault().toLanguageTag())
                .put("current_time_zone", TimeZone.getDefault().id))
    }
    /** Read at its first use, which is on a thread of the kit unless the app asks for the status first. */
    private val store by lazy { Store(File(context.noBackupFilesDir, "herald"), sealer) }
    private val users = UserTokens()
    private val notifications = Notifications(context, settings)
    /** Two threads: a change is stored while a call waits for its answer. */
    private val storing = thread("herald-store")
    private val sending = thread("herald-send")
    private var queued: CompletableFuture<Unit>? = null
    /** Changes that are not stored yet. */
    private val unstored = AtomicInteger()
    private val listeners = CopyOnWriteArraySet<(Status) -> Unit>()
    @Volatile private var problem: Problem? = null

    /** Gets a new push token from the platform: [HeraldMessagingService] sets it. Called when the credential of the present one is lost. */
    internal var replacePushToken: () -> Unit = {}

    val status: Status
        get() = with(store.state) {
            val changes = loggingOut || users.pending != null || topics.any { it.value != "subscribed" }
            val unfinished = unstored.get() > 0 || reports.isNotEmpty()
            val unregistered = pushToken != null && (device == null || registered != pushToken)
            Status(device, user, topics.filterValues { it == "subscribed" }.keys, changes || unregistered || unfinished, problem)
        }

    /**
     * Authorizes calls of this device at Herald's API, as `Bearer`: keep it on the phone, because who has it acts for the device. Null until
     * Herald has registered the device. [status] has the device's id.
     */
    val credential: String? get() = store.state.credential

    /** Called after each attempt to send, on the kit's thread. Returns a function that ends it. */
    fun onChange(listener: (Status) -> Unit): () -> Unit {
        listeners.add(listener)
        return { listeners.remove(listener) }
    }

    /** Registers the push token that Firebase issued last. [HeraldMessagingService] calls it, at every start and for each new token. */
    fun register(pushToken: String) {
        change { it.copy(pushToken = pushToken) }
    }

    /** Assigns the device to a user. [userToken]: a JWT from your backend. Log another user out first. */
    fun login(userToken: String) {
        users.pending = userToken
        settle()
    }

    /** Ends the user's pushes at this device, and removes what is shown. [HeraldMessagingService.logout] also replaces the push token. */
    fun logout() {
        users.pending = null
        users.last = null
        notifications.removeAll()
        change { it.copy(loggingOut = it.device != null, user = null) }
    }

    val topics = Topics()

    inner class Topics internal constructor() {
        fun add(name: String) {
            change { if (it.topics[name] == "subscribed") it else it.copy(topics = it.topics + (name to "add")) }
        }

        fun remove(name: String) {
            change { it.copy(topics = it.topics + (name to "remove")) }
        }
    }

    val preferences = Preferences { kinds, done -> settled().thenRunAsync({ done(choices(kinds)) }, sending) }

    /**
     * Shows a push that came as data, and reports that it arrived, if Herald asks for it. Waits some seconds, as the platform allows it while
     * it delivers a push, for the notification's image and the report: do not call it on the main thread. False if the push is not one that the kit draws.
     */
    fun show(data: Map<String, String>): Boolean {
        val push = Push.of(data) ?: return false
        val drawn = push.drawn ?: return false
        // A push for the user who has just logged out.
        if (store.state.loggingOut) return false
        notifications.post(push, drawn)
        val reported = push.receiptWithin?.let { received(data, it) }
        notifications.addImage(push, drawn)
        reported?.waitFor()
        return true
    }

    /** Shows a push that Firebase handed to the app because it is in the foreground. */
    internal fun show(data: Map<String, String>, title: String?, body: String?, image: String?, channel: String?, tag: String?) {
        if (title == null && body == null) return
        val drawn = JSONObject().put("title", title).put("body", body).put("image", image).put("channel", channel).put("tag", tag)
        show(data + ("herald" to drawn.toString()))
    }

    /** Reports that a push arrived. [show] does it. */
    fun received(push: Map<String, String>) {
        received(push, 0)
    }

    /** At a random moment of the next [withinSeconds], so that a broadcast's devices do not all report at once. */
    private fun received(push: Map<String, String>, withinSeconds: Int): CompletableFuture<Unit> =
        report(ReportKind.RECEIVED, push, null, Random.nextLong(withinSeconds * 1000L + 1))

    internal fun reportDismissed(push: Map<String, String>): CompletableFuture<Unit> = report(ReportKind.DISMISSED, push, null)

    internal fun reportOpen(push: Map<String, String>, button: String?): CompletableFuture<Unit> = report(ReportKind.OPEN, push, button)

    /** Removes the notification whose button was pressed. */
    internal fun remove(push: Map<String, String>) {
        push[Notifications.TAG_EXTRA]?.let(notifications::remove)
    }

    /** Reports that the user dismissed a notification. The kit does it for the notifications that it draws. */
    fun dismissed(push: Map<String, String>) {
        reportDismissed(push)
    }

    /** Reports that the user opened a notification, or pressed one of its buttons. The kit does it for the notifications that it draws. */
    fun open(push: Map<String, String>, button: String? = null) {
        reportOpen(push, button)
    }

    /**
     * Call it in `onCreate` and `onNewIntent` of the activity that notifications start. Returns the link of the opened notification, and
     * reports the open of one that the system drew.
     */
    fun opened(intent: Intent): String? {
        val push = pushOf(intent)
        // Without an open token the kit has reported the open already.
        open(push)
        // Android passes the same intent again when it recreates the activity.
        intent.removeExtra("token")
        intent.removeExtra("link_to")
        return push["link_to"]
    }

    /** Sends what is pending; [done] gets the result. The kit does it itself when there is a network again. */
    @JvmOverloads fun settle(done: (Status) -> Unit = {}) {
        settled().whenComplete { _, _ -> done(status) }
    }

    /** Done when all that was called before is stored and was sent, or could not be sent. */
    internal fun settled(): CompletableFuture<Unit> = CompletableFuture.runAsync({}, storing).thenCompose { settling() }

    private fun report(kind: ReportKind, data: Map<String, String>, button: String?, delayMs: Long = 0): CompletableFuture<Unit> {
        val push = Push.of(data) ?: return CompletableFuture.completedFuture(Unit)
        val report = Report(kind, push.notification, push.project, push.token, button, now(), now() + delayMs)
        return change { it.adding(report) }
    }

    /** Stores a change, then sends what is pending. Done when both are, or have failed. */
    private fun change(change: (State) -> State): CompletableFuture<Unit> {
        unstored.incrementAndGet()
        val stored = CompletableFuture.runAsync({ store.update(change) }, storing)
        return stored.whenComplete { _, _ -> unstored.decrementAndGet() }.thenCompose { settling() }
    }

    /** Calls that come while one is waiting for its turn share it. */
    @Synchronized private fun settling(): CompletableFuture<Unit> = queued ?: CompletableFuture<Unit>().also { next ->
        queued = next
        sending.execute {
            synchronized(this) { queued = null }
            try {
                sendAll()
            } catch (failed: Exception) {
                Log.w(TAG, "Herald cannot be called", failed)
            } finally {
                next.complete(Unit)
            }
        }
    }

    private fun sendAll() {
        val blocked = blockedMs()
        if (blocked > 0) return SettleJob.schedule(context, blocked)
        problem = try {
            Settle(store, registration, users, now).run(problem).also { store.update { it.copy(failures = 0, blockedUntil = 0) } }
        } catch (found: Problem) {
            if (found.retry) retryLater(found)
            if (found.slug == "credential-lost") replacePushToken()
            found
        }
        // Receipts that wait for their moment.
        if (problem?.retry != true) store.state.reports.minOfOrNull { it.notBefore }?.let { SettleJob.schedule(context, (it - now()).coerceAtLeast(0)) }
        problem?.let { Log.w(TAG, "${it.slug}: ${it.message}") }
        val status = status
        for (listener in listeners) listener(status)
    }

    /** Milliseconds that Herald asked to wait; 0 if the kit may call. */
    private fun blockedMs(): Long {
        val left = store.state.blockedUntil - now()
        // A time further away than Herald may ask for comes from a clock that was changed.
        return if (left in 1..MAX_BLOCKED_MS) left else 0
    }

    private fun choices(changed: Map<String, Boolean>): KindChoices = try {
        val blocked = blockedMs()
        if (blocked > 0) throw Problem("retry-later", "Herald asked to wait: try again in ${(blocked + 999) / 1000} s", 503)
        KindChoices(Settle(store, registration, users, now).preferences(changed), null)
    } catch (found: Problem) {
        if (found.retryAfterMs > 0) store.update { it.copy(blockedUntil = now() + found.retryAfterMs) }
        KindChoices(emptyList(), found)
    }

    private fun retryLater(problem: Problem) {
        val next = store.update {
            it.copy(failures = it.failures + 1, blockedUntil = if (problem.retryAfterMs > 0) now() + problem.retryAfterMs else 0)
        }
        SettleJob.schedule(context, problem.retryAfterMs + Random.nextLong(longestRetryMs(next.failures)))
    }

    private fun setting(name: String): String = settings.getString(name)
        ?: throw IllegalStateException("The manifest lacks <meta-data android:name=\"$name\" android:value=\"…\" />")

    companion object {
        @Volatile private var instance: Herald? = null

        /** One for the process. Throws IllegalStateException if the manifest lacks the gateway or the project. */
        @JvmStatic fun get(context: Context): Herald = instance ?: synchronized(this) {
            instance ?: Herald(context.applicationContext, AesGcmSealer(::keyOfDevice)).also { instance = it }
        }

        /** For tests, where there is no AndroidKeyStore. */
        internal fun use(herald: Herald?) {
            instance = herald
        }
    }
}

private fun thread(name: String) = Executors.newSingleThreadExecutor { Thread(it, name).apply { isDaemon = true } }

/** 30 s, doubled with each failure, at most an hour. The wait is a random part of it. */
internal fun longestRetryMs(failures: Int): Long = (30_000L shl (failures - 1).coerceIn(0, 10)).coerceAtMost(3_600_000L)

/** The platform gives a receiver ten seconds. */
internal fun Future<*>.waitFor() {
    try {
        get(8, TimeUnit.SECONDS)
    } catch (_: Exception) {
        // The job sends it later.
    }
}
