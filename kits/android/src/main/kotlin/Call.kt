package io.herald

import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL
import java.text.ParseException
import java.text.SimpleDateFormat
import java.util.Locale
import java.util.TimeZone
import org.json.JSONException
import org.json.JSONObject

/** Why a call failed. */
class Problem internal constructor(
    /** Herald's slug, such as `user-token-invalid`; or `offline`, `failed`, `credential-lost`, `not-registered`, `retry-later`. */
    val slug: String,
    message: String,
    /** HTTP status; 0 without an answer. */
    val status: Int,
    /** Milliseconds that Herald's Retry-After named; 0 without. */
    internal val retryAfterMs: Long = 0,
) : IOException(message) {
    /** Whether the kit keeps the change and retries it: also after a redirect, which is not Herald's. */
    val retry: Boolean = status < 400 || status == 408 || status == 429 || status > 499

    /** Herald no longer knows the device or its credential. */
    internal val isUnknownDevice: Boolean get() = status == 401 || slug == "device-not-found"
}

private const val TIMEOUT_MS = 20_000

/** Calls Herald. Returns the parsed body, or an empty object. Throws a [Problem]. */
internal fun call(gateway: String, method: String, path: String, body: JSONObject? = null, credential: String? = null): JSONObject =
    try {
        val connection = URL("$gateway/api/v1/$path").openConnection() as HttpURLConnection
        try {
            connection.send(method, body, credential)
        } finally {
            connection.disconnect()
        }
    } catch (problem: Problem) {
        throw problem
    } catch (failed: Exception) {
        throw Problem("offline", failed.toString(), 0)
    }

private fun HttpURLConnection.send(method: String, body: JSONObject?, credential: String?): JSONObject {
    // Android's HttpURLConnection accepts PATCH.
    requestMethod = method
    connectTimeout = TIMEOUT_MS
    readTimeout = TIMEOUT_MS
    instanceFollowRedirects = false
    if (credential != null) setRequestProperty("Authorization", "Bearer $credential")
    if (body != null) {
        doOutput = true
        setRequestProperty("Content-Type", "application/json")
        outputStream.use { it.write(body.toString().toByteArray()) }
    }
    val status = responseCode
    val text = (if (status < 400) inputStream else errorStream)?.use { it.reader().readText() }.orEmpty()
    val answer = try {
        JSONObject(text)
    } catch (_: JSONException) {
        JSONObject()
    }
    if (status in 200..299) return answer
    val errors = answer.optJSONArray("errors")?.let { errors -> (0 until errors.length()).joinToString("; ") { errors.optString(it) } }
    val slug = answer.text("type")?.substringAfter('#') ?: "failed"
    throw Problem(slug, errors ?: "Herald answered $status", status, retryAfterMs(getHeaderField("Retry-After"), System.currentTimeMillis()))
}

/** Retry-After, seconds or a date of HTTP, as milliseconds from [now]; 0 if it says neither. */
internal fun retryAfterMs(header: String?, now: Long): Long {
    val text = header?.trim() ?: return 0
    text.toLongOrNull()?.let { return it.coerceIn(0, MAX_BLOCKED_MS / 1000) * 1000 }
    val format = SimpleDateFormat("EEE, dd MMM yyyy HH:mm:ss zzz", Locale.US).apply { timeZone = TimeZone.getTimeZone("GMT") }
    return try {
        (format.parse(text)?.time ?: now).minus(now).coerceIn(0, MAX_BLOCKED_MS)
    } catch (_: ParseException) {
        0
    }
}

/** A longer wait would be an error, of Herald's clock or this device's. */
internal const val MAX_BLOCKED_MS = 86_400_000L
