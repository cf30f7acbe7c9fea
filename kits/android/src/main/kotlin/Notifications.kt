package io.herald

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.app.PendingIntent
import android.content.Context
import android.content.Intent
import android.graphics.Bitmap
import android.graphics.Color
import android.net.Uri
import android.os.Build
import android.os.Bundle
import android.util.Log

/** Draws pushes. Icon, color and channel are those that the manifest names for Firebase, so that both draw alike. */
internal class Notifications(private val context: Context, private val settings: Bundle) {
    private val manager = context.getSystemService(NotificationManager::class.java)

    /** Makes no network call: FCM delivers less urgently to an app that shows nothing at once. */
    fun post(push: Push, drawn: Drawn) = notify(push, drawn, null)

    /** Loads the image, and shows it if the notification is still there. */
    fun addImage(push: Push, drawn: Drawn) {
        val address = drawn.image ?: return
        val image = loadImage(address) ?: return
        if (manager.activeNotifications.any { it.tag == drawn.tag && it.notification.extras.getString(ID) == push.notification })
            notify(push, drawn, image)
    }

    fun remove(tag: String) = manager.cancel(tag, 0)

    fun removeAll() = manager.cancelAll()

    private fun notify(push: Push, drawn: Drawn, image: Bitmap?) {
        val builder = if (Build.VERSION.SDK_INT >= 26) Notification.Builder(context, channelOf(drawn)) else builderBeforeChannels()
        builder
            .setSmallIcon(iconOf(drawn))
            .setContentTitle(drawn.title)
            .setContentText(drawn.body)
            .setAutoCancel(true)
            .setOnlyAlertOnce(image != null)
            .setNumber(drawn.badge)
            .setExtras(Bundle().apply { putString(ID, push.notification) })
            .setContentIntent(activity(push, drawn, null))
            .setDeleteIntent(broadcast(push, drawn, null))
        colorOf(drawn)?.let(builder::setColor)
        if (image == null) builder.setStyle(Notification.BigTextStyle().bigText(drawn.body))
        else builder.setLargeIcon(image).setStyle(Notification.BigPictureStyle().bigPicture(image).setSummaryText(drawn.body))
        for (button in drawn.buttons) {
            // Android 12 lets only an activity open the app.
            val pressed = if (button.opens) activity(push, drawn, button) else broadcast(push, drawn, button)
            builder.addAction(Notification.Action.Builder(null, button.title, pressed).build())
        }
        try {
            manager.notify(drawn.tag, 0, builder.build())
        } catch (refused: RuntimeException) {
            Log.w(TAG, "The notification cannot be shown", refused)
        }
    }

    /** Android before 8. */
    @Suppress("DEPRECATION")
    private fun builderBeforeChannels() = Notification.Builder(context)
        .setDefaults(Notification.DEFAULT_ALL)
        .setPriority(Notification.PRIORITY_HIGH)

    /** The push's channel if the app has created it, else the app's default, else one of the kit. */
    private fun channelOf(drawn: Drawn): String {
        val wanted = listOf(drawn.channel, settings.getString("com.google.firebase.messaging.default_notification_channel_id"))
        wanted.firstOrNull { it != null && manager.getNotificationChannel(it) != null }?.let { return it }
        val name = context.applicationInfo.loadLabel(context.packageManager)
        manager.createNotificationChannel(NotificationChannel(CHANNEL, name, NotificationManager.IMPORTANCE_DEFAULT))
        return CHANNEL
    }

    private fun iconOf(drawn: Drawn): Int = sequenceOf(
        drawn.icon?.let { context.resources.getIdentifier(it, "drawable", context.packageName) },
        settings.getInt("com.google.firebase.messaging.default_notification_icon"),
        context.applicationInfo.icon,
    ).firstOrNull { it != null && it != 0 } ?: android.R.drawable.sym_def_app_icon

    private fun colorOf(drawn: Drawn): Int? = try {
        drawn.color?.let(Color::parseColor)
    } catch (_: IllegalArgumentException) {
        null
    } ?: settings.getInt("com.google.firebase.messaging.default_notification_color").takeIf { it != 0 }?.let(context::getColor)

    private fun activity(push: Push, drawn: Drawn, button: Button?): PendingIntent =
        PendingIntent.getActivity(context, 0, intent(HeraldActivity::class.java, push, drawn, button), FLAGS)

    private fun broadcast(push: Push, drawn: Drawn, button: Button?): PendingIntent =
        PendingIntent.getBroadcast(context, 0, intent(HeraldReceiver::class.java, push, drawn, button), FLAGS)

    private fun intent(component: Class<*>, push: Push, drawn: Drawn, button: Button?): Intent {
        val intent = Intent(context, component)
        for ((name, value) in push.data - "herald") intent.putExtra(name, value)
        button?.link?.let { intent.putExtra("link_to", it) }
        // Android takes intents for the same one that differ only in their extras.
        return intent.setData(Uri.fromParts("herald", push.notification, button?.id))
            .putExtra(TAG_EXTRA, drawn.tag)
            .putExtra(BUTTON_EXTRA, button?.id)
            .putExtra(ACTION_EXTRA, drawn.clickAction)
    }

    companion object {
        private const val FLAGS = PendingIntent.FLAG_IMMUTABLE or PendingIntent.FLAG_UPDATE_CURRENT
        private const val CHANNEL = "herald"
        private const val ID = "io.herald.notification"
        const val TAG_EXTRA = "io.herald.tag"
        const val BUTTON_EXTRA = "io.herald.button"
        const val ACTION_EXTRA = "io.herald.action"
        /** What the kit's own intents carry beside the push. */
        val EXTRAS = setOf(TAG_EXTRA, BUTTON_EXTRA, ACTION_EXTRA)
    }
}
