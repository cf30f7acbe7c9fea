package io.herald

import android.app.Activity
import android.content.BroadcastReceiver
import android.content.Context
import android.content.Intent
import android.net.Uri
import android.os.Bundle

/** What a tap on a notification, or on a button that opens the app, starts. It reports the open, and opens the app in its place. */
class HeraldActivity : Activity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val push = pushOf(intent)
        if (savedInstanceState == null) {
            val herald = Herald.get(this)
            herald.open(push - Notifications.EXTRAS, push[Notifications.BUTTON_EXTRA])
            herald.remove(push)
            target(push)?.let(::startActivity)
        }
        finish()
    }

    /** The app's activity for the link; else the one that starts the app, which finds the link in the intent's extras. */
    private fun target(push: Map<String, String>): Intent? {
        // Only this app's own activities: a link of a push must not start another app.
        val wanted = listOfNotNull(
            push["link_to"]?.let { Intent(Intent.ACTION_VIEW, Uri.parse(it)) },
            push[Notifications.ACTION_EXTRA]?.let { Intent(it) },
        ).map { it.setPackage(packageName) }
        val start = wanted.firstOrNull { it.resolveActivity(packageManager) != null }
            ?: packageManager.getLaunchIntentForPackage(packageName)
        // Without the open token: the open is reported.
        for ((name, value) in push - Notifications.EXTRAS - "token") start?.putExtra(name, value)
        return start?.addFlags(Intent.FLAG_ACTIVITY_NEW_TASK or Intent.FLAG_ACTIVITY_CLEAR_TOP or Intent.FLAG_ACTIVITY_SINGLE_TOP)
    }
}

/** Gets what opens nothing: a dismissal, and a press of a button with `opens: false`. */
class HeraldReceiver : BroadcastReceiver() {
    override fun onReceive(context: Context, intent: Intent) {
        val push = pushOf(intent)
        val button = push[Notifications.BUTTON_EXTRA]
        val herald = Herald.get(context)
        val reported = if (button == null) herald.reportDismissed(push - Notifications.EXTRAS) else herald.reportOpen(push - Notifications.EXTRAS, button)
        if (button != null) herald.remove(push)
        // Null outside of a broadcast. Android waits ten seconds; what is not sent by then is sent by the job.
        val broadcast: PendingResult? = goAsync()
        reported.whenComplete { _, _ -> broadcast?.finish() }
    }
}
