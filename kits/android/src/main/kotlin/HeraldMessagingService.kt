package io.herald

import android.content.Context
import com.google.firebase.messaging.FirebaseMessaging
import com.google.firebase.messaging.FirebaseMessagingService
import com.google.firebase.messaging.RemoteMessage

/** Connects [Herald] to Firebase. The kit's manifest declares it. An app that has its own service passes these two calls on. */
open class HeraldMessagingService : FirebaseMessagingService() {
    override fun onNewToken(token: String) = Herald.get(this).register(token)

    /** Called for pushes that the kit draws, and for all others while the app is in the foreground. */
    override fun onMessageReceived(message: RemoteMessage) {
        Herald.get(this).show(message.data)
        message.notification?.apply { Herald.get(this@HeraldMessagingService).show(message.data, title, body, imageUrl?.toString(), channelId, tag) }
    }

    companion object {
        /** Call it when the app starts: registers the current push token. */
        @JvmStatic fun start(context: Context) {
            Herald.get(context).replacePushToken = { replaceToken(context) }
            FirebaseMessaging.getInstance().token.addOnSuccessListener { Herald.get(context).register(it) }
        }

        /** Logs the user out. FCM drops pushes in transit to the old token; the device keeps its id with the new one. */
        @JvmStatic fun logout(context: Context) {
            Herald.get(context).logout()
            replaceToken(context)
        }

        private fun replaceToken(context: Context) {
            FirebaseMessaging.getInstance().deleteToken().addOnCompleteListener { start(context) }
        }
    }
}
