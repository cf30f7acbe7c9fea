package com.example.push

import android.app.NotificationManager
import android.content.Context
import android.content.Intent
import android.content.SharedPreferences
import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL
import java.net.URLEncoder
import java.util.Locale
import java.util.TimeZone
import java.util.concurrent.Executors
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

/**
 * A device at Herald. Copy it: it needs only Android, from API level 24. `HeraldMessagingService.kt` beside it connects it to Firebase.
 *
 * Every call stores a change, which a background thread then sends to Herald. Changes that cannot be sent now are sent by the next call or
 * by [settle], which you call when the app starts and when the network is back.
 */
class Herald private constructor(private val context: Context) {
    private val gateway = "https://push.example.com"
    private val project = "prj_…"

    private val thread = Executors.newSingleThreadExecutor()
    // Private to the app. The credential acts for this device: leave the file out of backups (android:dataExtractionRules).
    private val store: SharedPreferences = context.getSharedPreferences("herald", Context.MODE_PRIVATE)

    /** Call it at every start, and when Firebase issues a new token. */
    fun register(pushToken: String) = run { it.put("pushToken", pushToken).put("due", true) }

    /** [userToken]: a JWT from your backend. */
    fun login(userToken: String) = run { it.put("userToken", userToken) }

    /** Removes the shown notifications. Call [HeraldMessagingService.logout] instead, which also deletes the push token. */
    fun logout() {
        context.getSystemService(NotificationManager::class.java).cancelAll()
        run { it.put("loggingOut", true).remove("userToken") }
    }

    fun subscribe(topic: String) = run { it.topics().put(topic, "add") }

    fun unsubscribe(topic: String) = run { it.topics().put(topic, "remove") }

    /** Call it in `onCreate` and `onNewIntent` of the activity that notifications start. Returns the link of the opened notification. */
    fun opened(intent: Intent): String? {
        val id = intent.getStringExtra("notification_id") ?: return null
        val open = JSONObject().put("notification", id)
            .put("project", intent.getStringExtra("project_id"))
            .put("token", intent.getStringExtra("token"))
        run { it.opens().put(open) }
        // Android passes the same intent again when it recreates the activity.
        intent.removeExtra("notification_id")
        return intent.getStringExtra("link_to")
    }

    fun settle() = run { }

    private fun run(change: (JSONObject) -> Unit) {
        thread.execute {
            val state = try { JSONObject(store.getString("state", "{}") ?: "{}") } catch (_: JSONException) { JSONObject() }
            change(state)
            save(state)
            try {
                sync(state)
            } catch (refused: Refused) {
                if (refused.status == 401) {
                    // Herald no longer knows the device, so it registers as a new one.
                    state.remove("device")
                    state.remove("credential")
                    save(state.put("due", true))
                    try { sync(state) } catch (_: IOException) { }
                }
            } catch (_: IOException) {
                // A later call retries.
            }
        }
    }

    private fun save(state: JSONObject) = store.edit().putString("state", state.toString()).apply()

    private fun sync(state: JSONObject) {
        while (state.opens().length() > 0) {
            val open = state.opens().getJSONObject(0)
            val body = JSONObject().put("project_id", open.opt("project")).put("token", open.opt("token"))
            val id = open.getString("notification")
            attempt { call("PUT", "/notifications/$id/open", body) }
            state.opens().remove(0)
            save(state)
        }
        val device = state.optString("device")
        if (state.optBoolean("loggingOut")) {
            if (device != "") attempt { call("DELETE", "/devices/$device/user", null, state.optString("credential")) }
            state.remove("loggingOut")
            save(state)
        }
        if (state.optBoolean("due")) {
            val pushToken = state.getString("pushToken")
            val body = JSONObject()
                .put("project_id", project)
                .put("platform", "android")
                .put("identifier", pushToken)
                .put("identifiers", JSONObject()
                    .put("current_locale", Locale.getDefault().toLanguageTag())
                    .put("current_time_zone", TimeZone.getDefault().id))
            // With the credential this keeps the device.
            val registered = state.optString("registered")
            if (registered != "" && registered != pushToken) body.put("previous_identifier", registered)
            val answer = call("PUT", "/identification", body, state.optString("credential"))
            state.put("device", answer.getJSONObject("data").getString("id")).put("registered", pushToken).remove("due")
            if (answer.has("credential")) {
                // A new device has no topics yet.
                state.put("credential", answer.getString("credential"))
                for (name in state.topics().keyList()) if (state.topics().getString(name) != "remove") state.topics().put(name, "add")
            }
            save(state)
        }
        val own = state.optString("device")
        val credential = state.optString("credential")
        if (own == "" || credential == "") return
        if (state.has("userToken")) {
            val login = JSONObject().put("device", JSONObject().put("user_token", state.getString("userToken")))
            attempt { call("PATCH", "/devices/$own", login, credential) }
            state.remove("userToken")
            save(state)
        }
        for (name in state.topics().keyList()) {
            val topic = URLEncoder.encode(name, "UTF-8")
            val taken = when (state.topics().getString(name)) {
                "add" -> attempt { call("PUT", "/devices/$own/topics/$topic", null, credential) }
                "remove" -> { attempt { call("DELETE", "/devices/$own/topics/$topic", null, credential) }; false }
                else -> continue
            }
            if (taken) state.topics().put(name, "subscribed") else state.topics().remove(name)
            save(state)
        }
    }

    /** False if Herald refuses the request, as it would refuse a retry. */
    private fun attempt(work: () -> Unit): Boolean = try {
        work()
        true
    } catch (refused: Refused) {
        if (refused.status == 401) throw refused
        android.util.Log.w("Herald", refused.message.orEmpty())
        false
    }

    private fun call(method: String, path: String, body: JSONObject?, credential: String = ""): JSONObject {
        val connection = URL("$gateway/api/v1$path").openConnection() as HttpURLConnection
        try {
            // Android's HttpURLConnection accepts PATCH.
            connection.requestMethod = method
            connection.connectTimeout = 20_000
            connection.readTimeout = 20_000
            if (credential != "") connection.setRequestProperty("Authorization", "Bearer $credential")
            if (body != null) {
                connection.doOutput = true
                connection.setRequestProperty("Content-Type", "application/json")
                connection.outputStream.use { it.write(body.toString().toByteArray()) }
            }
            val status = connection.responseCode
            val text = (if (status < 400) connection.inputStream else connection.errorStream)?.use { it.reader().readText() }.orEmpty()
            if (status == 429 || status >= 500) throw IOException("Herald answered $status")
            if (status >= 400) throw Refused(status, text)
            return if (text == "") JSONObject() else JSONObject(text)
        } catch (malformed: JSONException) {
            throw IOException(malformed)
        } finally {
            connection.disconnect()
        }
    }

    /** Herald refused the request, and would refuse a retry too. */
    private class Refused(val status: Int, message: String) : IOException(message)

    private fun JSONObject.topics(): JSONObject = optJSONObject("topics") ?: JSONObject().also { put("topics", it) }
    private fun JSONObject.opens(): JSONArray = optJSONArray("opens") ?: JSONArray().also { put("opens", it) }
    private fun JSONObject.keyList(): List<String> = keys().asSequence().toList()

    companion object {
        @Volatile private var instance: Herald? = null

        fun get(context: Context): Herald = instance ?: synchronized(this) {
            instance ?: Herald(context.applicationContext).also { instance = it }
        }
    }
}
