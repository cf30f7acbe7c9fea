package io.herald

import org.json.JSONArray
import org.json.JSONObject

internal enum class ReportKind(val path: String) { RECEIVED("received"), DISMISSED("dismissed"), OPEN("open") }

/** A report that Herald has not accepted yet. [at], [notBefore]: milliseconds since 1970. */
internal data class Report(
    val kind: ReportKind,
    val notification: String,
    val project: String,
    val token: String,
    val button: String?,
    val at: Long,
    val notBefore: Long,
)

/** What is stored of this device. User tokens are not: they stay in memory. */
internal data class State(
    /** The push token that the platform issued last, and the one that was registered last, with its data and the time. */
    val pushToken: String? = null,
    val registered: String? = null,
    val registeredData: String? = null,
    val registeredAt: Long = 0,
    val device: String? = null,
    val credential: String? = null,
    /** The logged-in user, as Herald confirmed. */
    val user: String? = null,
    /** A log-out that Herald has not confirmed yet: until then no push is shown. */
    val loggingOut: Boolean = false,
    /** By name: `subscribed`, or a change that has not reached Herald yet: `add`, `remove`. */
    val topics: Map<String, String> = emptyMap(),
    val reports: List<Report> = emptyList(),
    /** Failed attempts in a row, and the time that Herald's Retry-After named. */
    val failures: Int = 0,
    val blockedUntil: Long = 0,
) {
    /** With another report; the oldest of too many is dropped, and those that Herald would refuse by their age. */
    fun adding(report: Report): State =
        if (reports.any { it.kind == report.kind && it.notification == report.notification && it.token == report.token }) this
        else copy(reports = (reports + report).filter { report.at - it.at < REPORT_AGE_MS }.takeLast(MAX_REPORTS))

    fun toJson(): String = JSONObject()
        .put("pushToken", pushToken)
        .put("registered", registered)
        .put("registeredData", registeredData)
        .put("registeredAt", registeredAt)
        .put("device", device)
        .put("credential", credential)
        .put("user", user)
        .put("loggingOut", loggingOut)
        .put("topics", JSONObject(topics))
        .put("failures", failures)
        .put("blockedUntil", blockedUntil)
        .put("reports", JSONArray(reports.map {
            JSONObject()
                .put("kind", it.kind.path)
                .put("notification", it.notification)
                .put("project", it.project)
                .put("token", it.token)
                .put("button", it.button)
                .put("at", it.at)
                .put("notBefore", it.notBefore)
        }))
        .toString()

    companion object {
        const val MAX_REPORTS = 100
        /** Herald accepts reports for 30 days. */
        const val REPORT_AGE_MS = 30L * 86_400_000

        /** Throws JSONException. */
        fun of(json: String): State {
            val from = JSONObject(json)
            val topics = from.optJSONObject("topics") ?: JSONObject()
            val reports = from.optJSONArray("reports") ?: JSONArray()
            return State(
                from.text("pushToken"),
                from.text("registered"),
                from.text("registeredData"),
                from.optLong("registeredAt"),
                from.text("device"),
                from.text("credential"),
                from.text("user"),
                from.optBoolean("loggingOut"),
                topics.keys().asSequence().associateWith { topics.getString(it) },
                reports.objects().map { report ->
                    Report(
                        ReportKind.values().first { it.path == report.getString("kind") },
                        report.getString("notification"),
                        report.getString("project"),
                        report.getString("token"),
                        report.text("button"),
                        report.getLong("at"),
                        report.getLong("notBefore"),
                    )
                },
                from.optInt("failures"),
                from.optLong("blockedUntil"),
            )
        }
    }
}

/** Null where the field is absent, null or no text. */
internal fun JSONObject.text(name: String): String? = opt(name) as? String

/** The objects of the array; other values are left out. */
internal fun JSONArray.objects(): List<JSONObject> = (0 until length()).mapNotNull { optJSONObject(it) }
