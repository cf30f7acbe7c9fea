package io.herald

import android.app.Application
import android.app.NotificationManager
import android.app.PendingIntent
import android.app.job.JobInfo
import android.app.job.JobScheduler
import android.content.ComponentName
import android.content.Intent
import android.content.IntentFilter
import android.os.Bundle
import android.service.notification.StatusBarNotification
import java.io.File
import java.net.HttpURLConnection
import javax.crypto.KeyGenerator
import org.robolectric.Robolectric
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf

/** A phone with an app that has the kit: Robolectric's Android, without AndroidKeyStore. */
class Phone(gateway: String = "http://127.0.0.1:9", project: String = "prj_none", val settings: Bundle = Bundle()) {
    val app: Application = RuntimeEnvironment.getApplication()
    private val key = KeyGenerator.getInstance("AES").apply { init(256) }.generateKey()
    var now = System.currentTimeMillis()
    val file = File(app.noBackupFilesDir, "herald")
    val notifications: NotificationManager = app.getSystemService(NotificationManager::class.java)

    init {
        acceptPatch()
        settings.putString("io.herald.gateway", gateway)
        settings.putString("io.herald.project", project)
        val packages = shadowOf(app.packageManager)
        packages.getInternalMutablePackageInfo(app.packageName).applicationInfo!!.metaData = settings
        val launcher = ComponentName(app, "com.example.MainActivity")
        packages.addActivityIfNotPresent(launcher)
        packages.addIntentFilterForActivity(launcher, IntentFilter(Intent.ACTION_MAIN).apply { addCategory(Intent.CATEGORY_LAUNCHER) })
        packages.addActivityIfNotPresent(ComponentName(app, HeraldActivity::class.java))
    }

    /** Starts the app's process, or starts it again: what is not stored is gone. */
    fun start(sealer: Sealer = AesGcmSealer { key }): Herald = Herald(app, sealer) { now }.also { Herald.use(it) }

    val shown: List<StatusBarNotification> get() = notifications.activeNotifications.toList()

    val job: JobInfo? get() = app.getSystemService(JobScheduler::class.java).allPendingJobs.singleOrNull()

    /** What a tap does: starts an activity, or sends a broadcast. Returns the intent that opens the app. */
    fun tap(pending: PendingIntent): Intent? {
        val intent = shadowOf(pending).savedIntent
        if (shadowOf(pending).isBroadcast) {
            HeraldReceiver().onReceive(app, intent)
            return null
        }
        check(intent.component?.className == HeraldActivity::class.java.name)
        val activity = Robolectric.buildActivity(HeraldActivity::class.java, intent).create().get()
        check(activity.isFinishing)
        return shadowOf(activity).nextStartedActivity
    }

    /** The JDK's HttpURLConnection has a list of methods without PATCH, which Android's takes. */
    private fun acceptPatch() {
        val field = HttpURLConnection::class.java.getDeclaredField("methods").apply { isAccessible = true }
        @Suppress("UNCHECKED_CAST") val methods = field.get(null) as Array<String>
        methods[methods.indexOf("TRACE").takeIf { it >= 0 } ?: return] = "PATCH"
    }
}
