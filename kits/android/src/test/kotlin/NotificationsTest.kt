package io.herald

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.content.ComponentName
import android.content.Intent
import android.content.IntentFilter
import android.graphics.Color
import com.sun.net.httpserver.HttpServer
import java.net.InetSocketAddress
import java.util.Base64
import org.json.JSONArray
import org.json.JSONObject
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf

@RunWith(RobolectricTestRunner::class)
class NotificationsTest {
    private lateinit var phone: Phone
    private lateinit var herald: Herald
    private val images = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)

    @Before fun start() {
        phone = Phone()
        herald = phone.start()
        images.start()
    }

    @After fun stop() = images.stop(0)

    private fun push(herald: JSONObject, id: String = "ntf_1", data: Map<String, String> = emptyMap()) =
        mapOf("notification_id" to id, "project_id" to "prj_1", "token" to "v1.0.dev_1.x", "herald" to herald.toString()) + data

    private fun words() = JSONObject().put("title", "Hello").put("body", "World")

    @Test fun `draws title, body, badge, color and tag`() {
        assertTrue(herald.show(push(words().put("tag", "order-42").put("badge", 3).put("color", "#ff0000"))))
        val shown = phone.shown.single()
        assertEquals("order-42", shown.tag)
        val notification = shown.notification
        assertEquals("Hello", notification.extras.getString(Notification.EXTRA_TITLE))
        assertEquals("World", notification.extras.getString(Notification.EXTRA_TEXT))
        assertEquals(3, notification.number)
        assertEquals(Color.RED, notification.color)
        assertNotNull(notification.smallIcon)
    }

    @Test fun `a push with the same tag replaces the one that is shown`() {
        herald.show(push(words().put("tag", "score")))
        herald.show(push(words().put("tag", "score").put("title", "2:0"), "ntf_2"))
        assertEquals("2:0", phone.shown.single().notification.extras.getString(Notification.EXTRA_TITLE))
    }

    @Test fun `a push of another sender, and a silent one, are not drawn`() {
        assertFalse(herald.show(mapOf("title" to "Hello")))
        assertFalse(herald.show(mapOf("notification_id" to "ntf_1", "project_id" to "prj_1", "token" to "t")))
        assertFalse(herald.show(push(words()) + ("herald" to "no JSON")))
        assertEquals(emptyList<Any>(), phone.shown)
    }

    @Test fun `uses the push's channel if the app has created it, else the app's default, else its own`() {
        fun channel(id: String) = phone.notifications.createNotificationChannel(NotificationChannel(id, id, NotificationManager.IMPORTANCE_LOW))
        fun shownIn(): String = phone.shown.single().notification.channelId
        herald.show(push(words().put("channel", "orders")))
        assertEquals("herald", shownIn())
        phone.settings.putString("com.google.firebase.messaging.default_notification_channel_id", "general")
        herald = phone.start()
        channel("general")
        herald.show(push(words().put("channel", "orders")))
        assertEquals("general", shownIn())
        channel("orders")
        herald.show(push(words().put("channel", "orders")))
        assertEquals("orders", shownIn())
    }

    @Test fun `buttons open the app by an activity, and only report by a receiver`() {
        val buttons = JSONArray()
            .put(JSONObject().put("id", "track").put("title", "Track").put("link_to", "/orders/42"))
            .put(JSONObject().put("id", "later").put("title", "Later").put("opens", false))
            .put(JSONObject().put("title", "Without an id"))
        herald.show(push(words().put("buttons", buttons), data = mapOf("link_to" to "/orders")))
        val (track, later) = phone.shown.single().notification.actions.also { assertEquals(2, it.size) }
        assertTrue(shadowOf(track.actionIntent).isActivity)
        assertTrue(shadowOf(later.actionIntent).isBroadcast)
        assertTrue(shadowOf(phone.shown.single().notification.deleteIntent).isBroadcast)

        val start = phone.tap(track.actionIntent)!!
        assertEquals("com.example.MainActivity", start.component?.className)
        assertEquals("/orders/42", herald.opened(start))
        assertNull("Android hands the same intent over again", herald.opened(start))
        assertEquals("a pressed button removes the notification", emptyList<Any>(), phone.shown)
    }

    @Test fun `a tap opens the app's own activity for the link, and no other app`() {
        val mine = ComponentName(phone.app, "com.example.OrderActivity")
        shadowOf(phone.app.packageManager).apply {
            addActivityIfNotPresent(mine)
            addIntentFilterForActivity(mine, IntentFilter(Intent.ACTION_VIEW).apply {
                addCategory(Intent.CATEGORY_DEFAULT)
                addDataScheme("shop")
            })
        }
        fun opens(link: String): Intent {
            herald.show(push(words(), data = mapOf("link_to" to link)))
            return phone.tap(phone.shown.single().notification.contentIntent)!!
        }
        val own = opens("shop://orders/42")
        assertEquals(phone.app.packageName, own.`package`)
        assertEquals("shop://orders/42", own.dataString)
        for (link in listOf("https://example.com", "javascript:alert(1)", "/inbox"))
            assertEquals("com.example.MainActivity", opens(link).component?.className)
    }

    @Test fun `shows the push before it loads the image, and not again if it was dismissed meanwhile`() {
        val png = Base64.getDecoder().decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
        val shownBefore = mutableListOf<Int>()
        images.createContext("/seen.png") { exchange ->
            shownBefore.add(phone.shown.size)
            exchange.sendResponseHeaders(200, png.size.toLong())
            exchange.use { it.responseBody.write(png) }
        }
        images.createContext("/dismissed.png") { exchange ->
            phone.notifications.cancelAll()
            exchange.sendResponseHeaders(200, png.size.toLong())
            exchange.use { it.responseBody.write(png) }
        }
        images.createContext("/missing.png") { exchange -> exchange.use { it.sendResponseHeaders(404, -1) } }
        val address = "http://127.0.0.1:${images.address.port}"
        herald.show(push(words().put("image", "$address/seen.png")))
        assertEquals(listOf(1), shownBefore)
        assertNotNull(phone.shown.single().notification.getLargeIcon())
        herald.show(push(words().put("image", "$address/missing.png"), "ntf_2"))
        assertEquals(2, phone.shown.size)
        herald.show(push(words().put("image", "$address/dismissed.png"), "ntf_3"))
        assertEquals(emptyList<Any>(), phone.shown)
    }

    @Test fun `draws what Firebase hands over while the app is in the foreground`() {
        herald.show(push(words()) - "herald", "Hello", null, null, null, "score")
        assertEquals("score", phone.shown.single().tag)
    }
}
