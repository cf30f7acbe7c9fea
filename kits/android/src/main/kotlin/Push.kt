package io.herald

import android.content.Intent
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

/** A button of a notification. [opens]: whether a press opens the app. */
internal data class Button(val id: String, val title: String, val link: String?, val opens: Boolean)

/** What the kit draws: the field `herald` of a push's data. */
internal class Drawn(
    val title: String?,
    val body: String?,
    val image: String?,
    val channel: String?,
    val tag: String,
    val badge: Int,
    /** A name of a drawable, a color as `#rrggbb`, and the action of the activity that a tap opens. */
    val icon: String?,
    val color: String?,
    val clickAction: String?,
    val buttons: List<Button>,
)

/** A push of Herald, as the data of the platform's message. */
internal class Push private constructor(
    val data: Map<String, String>,
    val notification: String,
    val project: String,
    val token: String,
    val drawn: Drawn?,
    /** Seconds within which Herald wants the receipt; null if it does not ask for one. */
    val receiptWithin: Int?,
) {
    companion object {
        /** Null for a push of another sender. */
        fun of(data: Map<String, String>): Push? {
            val herald = data["herald"]?.let(::parsed)
            val notification = data["notification_id"] ?: return null
            return Push(
                data,
                notification,
                data["project_id"] ?: return null,
                data["token"] ?: return null,
                herald?.let { drawnOf(it, notification) },
                data["receipt"]?.toIntOrNull()?.coerceIn(0, MAX_WITHIN_SECONDS),
            )
        }

        private fun drawnOf(herald: JSONObject, notification: String) = Drawn(
            herald.text("title"),
            herald.text("body"),
            herald.text("image"),
            herald.text("channel"),
            herald.text("tag") ?: notification,
            herald.optInt("badge"),
            herald.text("icon"),
            herald.text("color"),
            herald.text("click_action"),
            (herald.optJSONArray("buttons") ?: JSONArray()).objects().mapNotNull { button ->
                val id = button.text("id") ?: return@mapNotNull null
                Button(id, button.text("title") ?: return@mapNotNull null, button.text("link_to"), button.optBoolean("opens", true))
            },
        )

        private fun parsed(json: String): JSONObject? = try {
            JSONObject(json)
        } catch (_: JSONException) {
            null
        }
    }
}

/** Herald asks for 25 at most. */
private const val MAX_WITHIN_SECONDS = 3600

/** The data of a push, from the extras of the intent that a tap starts. */
internal fun pushOf(intent: Intent): Map<String, String> {
    val extras = intent.extras ?: return emptyMap()
    return extras.keySet().mapNotNull { name -> extras.getString(name)?.let { name to it } }.toMap()
}
