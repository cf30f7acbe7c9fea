package com.example.push

import android.app.Notification
import android.app.NotificationManager
import android.app.PendingIntent
import android.content.Context
import android.content.Intent
import com.google.firebase.messaging.FirebaseMessaging
import com.google.firebase.messaging.FirebaseMessagingService
import com.google.firebase.messaging.RemoteMessage

/**
 * Not compiled here: needs `com.google.firebase:firebase-messaging`. Declare it in the manifest for `com.google.firebase.MESSAGING_EVENT`.
 */
class HeraldMessagingService : FirebaseMessagingService() {
    override fun onNewToken(token: String) = Herald.get(this).register(token)

    /** Called in the foreground, where the app shows the push. In the background Android does; a tap starts the app with its extras. */
    override fun onMessageReceived(message: RemoteMessage) {
        val shown = message.notification ?: return
        val intent = packageManager.getLaunchIntentForPackage(packageName) ?: return
        for ((key, value) in message.data) intent.putExtra(key, value)
        val flags = PendingIntent.FLAG_IMMUTABLE or PendingIntent.FLAG_UPDATE_CURRENT
        val tag = shown.tag ?: message.data["notification_id"]
        val notification = Notification.Builder(this, CHANNEL)
            .setSmallIcon(applicationInfo.icon)
            .setContentTitle(shown.title)
            .setContentText(shown.body)
            .setAutoCancel(true)
            .setContentIntent(PendingIntent.getActivity(this, tag.hashCode(), intent.addFlags(Intent.FLAG_ACTIVITY_SINGLE_TOP), flags))
            .build()
        getSystemService(NotificationManager::class.java).notify(tag, 0, notification)
    }

    companion object {
        /** The app creates this channel when it starts. */
        const val CHANNEL = "default"

        fun start(context: Context) {
            FirebaseMessaging.getInstance().token.addOnSuccessListener { Herald.get(context).register(it) }
        }

        /** FCM drops pushes in transit to the old token. The device keeps its id with the new token. */
        fun logout(context: Context) {
            Herald.get(context).logout()
            FirebaseMessaging.getInstance().deleteToken().addOnCompleteListener { start(context) }
        }
    }
}
