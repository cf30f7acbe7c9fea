package io.herald

import java.net.URLEncoder
import org.json.JSONObject

/** An unchanged device registers once a day. */
private const val REGISTER_EVERY_MS = 86_400_000L

/** What the app knows of itself: identifiers and what this kit can do. */
internal interface Registration {
    val gateway: String
    val project: String

    /** The fields beside token and platform. */
    fun data(): JSONObject
}

/** The user tokens of this process: they are never stored. */
internal class UserTokens {
    /** A login that Herald has not confirmed yet. */
    @Volatile var pending: String? = null

    /** The last login, for a device that has to register as a new one. */
    @Volatile var last: String? = null
}

/**
 * Sends all stored changes to Herald, and stores the state after each. A refused change is dropped, so that it does not block the others.
 */
internal class Settle(
    private val store: Store,
    private val registration: Registration,
    private val users: UserTokens,
    private val now: () -> Long,
) {
    private var refused: Problem? = null
    private var called = false
    private val state get() = store.state

    /**
     * Returns the last refusal, or null. One from [before] stays if there is nothing to send: an earlier run may have sent what this one was
     * started for. Throws the [Problem] of the first call that must wait.
     */
    fun run(before: Problem?): Problem? {
        asKnownDevice { once() }
        return if (called) refused else before?.takeIf { !it.retry }
    }

    /** Changes these choices of the device, the others stay; returns all. Throws a [Problem]. */
    fun preferences(changed: Map<String, Boolean>): List<KindChoice> = asKnownDevice {
        if (state.credential == null) throw Problem("not-registered", "Herald does not know the device yet: wait until the status names it", 409)
        val kinds = kindsOf(asDevice("GET", "/preferences"))
        if (changed.isEmpty()) return@asKnownDevice kinds
        val own = kinds.filter { it.setBy == "device" }.associate { it.kind to it.on }
        kindsOf(asDevice("PUT", "/preferences", JSONObject().put("preferences", JSONObject().put("kinds", JSONObject(own + changed)))))
    }

    private fun kindsOf(answer: JSONObject): List<KindChoice> {
        // A network that asks for a log-in answers with a page of its own.
        val kinds = answer.optJSONObject("data")?.optJSONArray("kinds") ?: throw Problem("failed", "the answer is not Herald's", 200)
        return kinds.objects().mapNotNull {
            val kind = it.text("kind") ?: return@mapNotNull null
            KindChoice(kind, it.text("title") ?: kind, it.optBoolean("on"), it.optBoolean("critical"), it.text("set_by") ?: "default")
        }
    }

    /** If Herald no longer knows the device, registers it as a new one and does the work again. */
    private fun <Result> asKnownDevice(work: () -> Result): Result = try {
        work()
    } catch (problem: Problem) {
        if (!problem.isUnknownDevice) throw problem
        store.update { it.copy(device = null, credential = null) }
        once()
        work()
    }

    private fun once() {
        sendReports()
        logOut()
        if (mustRegister()) register()
        logIn()
        changeTopics()
    }

    private fun sendReports() {
        for (report in state.reports.filter { it.notBefore <= now() }) {
            val age = now() - report.at
            val ago = (age / 1000).coerceAtLeast(0)
            val body = JSONObject().put("project_id", report.project).put("token", report.token).put("button", report.button)
            if (ago > 0) body.put("ago", ago)
            // A report needs no credential, so a refusal says nothing about the device.
            if (age < State.REPORT_AGE_MS) {
                try {
                    send("PUT", "notifications/${encoded(report.notification)}/${report.kind.path}", body)
                } catch (problem: Problem) {
                    if (problem.retry) throw problem
                    refused = problem
                }
            }
            store.update { it.copy(reports = it.reports - report) }
        }
    }

    private fun logOut() {
        if (!state.loggingOut) return
        if (state.credential != null) attempt { asDevice("DELETE", "/user") }
        store.update { it.copy(loggingOut = false, user = null) }
    }

    private fun mustRegister(): Boolean = with(state) {
        pushToken != null &&
            (device == null ||
                credential == null ||
                registered != pushToken ||
                registeredData != registration.data().toString() ||
                now() - registeredAt !in 0..REGISTER_EVERY_MS)
    }

    private fun register() {
        val before = state
        val data = registration.data()
        val body = JSONObject(data.toString())
            .put("project_id", registration.project)
            .put("platform", "android")
            .put("identifier", before.pushToken)
        // With the credential this keeps the device.
        if (before.registered != null && before.registered != before.pushToken) body.put("previous_identifier", before.registered)
        val answer = send("PUT", "identification", body, before.credential)
        val device = answer.optJSONObject("data")?.text("id")
        val credential = answer.text("credential") ?: before.credential.takeIf { device == before.device }
        if (device == null || credential == null)
            throw Problem("credential-lost", "The push token is registered and its credential is lost: register another push token", 409)
        store.update {
            val same = it.copy(
                registered = before.pushToken,
                registeredData = data.toString(),
                registeredAt = now(),
                device = device,
                credential = credential,
            )
            // A new device has no user and no topics yet.
            if (device == before.device) same
            else same.copy(user = null, topics = it.topics.filterValues { topic -> topic != "remove" }.mapValues { "add" })
        }
        if (device != before.device && users.pending == null) users.pending = users.last
    }

    private fun logIn() {
        val token = users.pending ?: return
        if (state.credential == null) return
        attempt {
            val answer = asDevice("PATCH", "", JSONObject().put("device", JSONObject().put("user_token", token)))
            store.update { it.copy(user = answer.optJSONObject("data")?.text("user_id")) }
            users.last = token
        }
        // A login that was made meanwhile stays.
        if (users.pending == token) users.pending = null
    }

    private fun changeTopics() {
        if (state.credential == null) return
        for ((name, wanted) in state.topics.filterValues { it != "subscribed" }) {
            val taken = attempt { asDevice(if (wanted == "add") "PUT" else "DELETE", "/topics/${encoded(name)}") }
            store.update {
                when {
                    // It was changed again meanwhile.
                    it.topics[name] != wanted -> it
                    taken && wanted == "add" -> it.copy(topics = it.topics + (name to "subscribed"))
                    else -> it.copy(topics = it.topics - name)
                }
            }
        }
    }

    private fun asDevice(method: String, path: String, body: JSONObject? = null): JSONObject =
        send(method, "devices/${state.device}$path", body, state.credential)

    private fun send(method: String, path: String, body: JSONObject?, credential: String? = null): JSONObject {
        called = true
        return call(registration.gateway, method, path, body, credential)
    }

    /** False if Herald refuses the change, as it would refuse a retry. */
    private fun attempt(work: () -> Unit): Boolean = try {
        work()
        true
    } catch (problem: Problem) {
        if (problem.retry || problem.isUnknownDevice) throw problem
        refused = problem
        false
    }

    private fun encoded(text: String): String = URLEncoder.encode(text, "UTF-8").replace("+", "%20")
}
