package io.herald

import android.content.Intent
import org.json.JSONArray
import org.json.JSONObject
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner

@RunWith(RobolectricTestRunner::class)
class ReportsTest : AtHerald() {
    private fun withButtons() = JSONObject().put("title", "On its way").put("body", "Order 42").put("link_to", "/orders").put("receipts", true)
        .put("buttons", JSONArray()
            .put(JSONObject().put("id", "track").put("title", "Track").put("link_to", "/orders/42"))
            .put(JSONObject().put("id", "later").put("title", "Later").put("opens", false)))

    @Test fun `a push is shown, opened by a tap while offline, and counted when the phone is back`() {
        val token = register()
        val id = receive(token, JSONObject().put("title", "Hello").put("body", "World").put("link_to", "/orders/42"))
        between.offline = true
        val start = phone.tap(phone.shown.single().notification.contentIntent)!!
        assertEquals("/orders/42", herald.opened(start))
        herald.settled().get()
        assertTrue(herald.status.pending)

        between.offline = false
        herald = phone.start()
        herald.settled().get()
        assertFalse(herald.status.pending)
        assertEquals(1, between.requests.count { it == "PUT /api/v1/notifications/$id/open" })
        eventually { assertEquals(1, counts(id).getInt("opened")) }
    }

    @Test fun `draws a push with buttons, reports its arrival, and the pressed button from offline`() {
        val token = register()
        val id = receive(token, withButtons())
        eventually { assertEquals(1, counts(id).getInt("received")) }
        assertEquals(1, counts(id).getInt("receipts_asked"))
        between.offline = true
        val notification = phone.shown.single().notification
        assertEquals(listOf("Track", "Later"), notification.actions.map { it.title })
        assertNull("it opens nothing", phone.tap(notification.actions[1].actionIntent))
        herald.settled().get()
        assertEquals(emptyList<Any>(), phone.shown)
        assertTrue(herald.status.pending)

        // An hour later, in another process: Herald gets the time of the press, at most back to that of the push.
        phone.now += 3_600_000
        between.offline = false
        herald = phone.start()
        herald.settled().get()
        assertFalse(herald.status.pending)
        assertNull(herald.status.problem)
        eventually { assertEquals(1, counts(id).optJSONObject("buttons")?.optInt("later")) }
        assertEquals(1, counts(id).getInt("opened"))
        assertEquals(0, counts(id).getInt("dismissed"))
    }

    @Test fun `a button that opens the app counts once, and a dismissal is no open`() {
        val token = register()
        val pressed = receive(token, withButtons())
        val start = phone.tap(phone.shown.single().notification.actions[0].actionIntent)!!
        assertEquals("/orders/42", herald.opened(start))
        val dismissed = receive(token, withButtons())
        phone.tap(phone.shown.single().notification.deleteIntent)
        herald.settled().get()
        eventually {
            assertEquals(1, counts(pressed).optJSONObject("buttons")?.optInt("track"))
            assertEquals(1, counts(dismissed).getInt("dismissed"))
        }
        assertEquals(1, counts(pressed).getInt("opened"))
        assertEquals(0, counts(dismissed).getInt("opened"))
        assertEquals(1, between.requests.count { it == "PUT /api/v1/notifications/$pressed/open" })
    }

    @Test fun `reports no arrival that Herald did not ask for`() {
        val token = register()
        val id = receive(token, JSONObject().put("title", "Hello"))
        herald.settled().get()
        assertEquals(0, between.requests.count { it.endsWith("/received") })
        assertEquals(0, counts(id).getInt("receipts_asked"))
    }

    @Test fun `reports the open of a push that the system drew`() {
        val token = register()
        val content = JSONObject().put("title", "Hello").put("link_to", "/inbox").put("targets", JSONArray().put(herald.status.device))
        val id = api("POST", "/notifications", JSONObject().put("notification", content)).getJSONObject("data").getString("id")
        val start = Intent()
        texts(message(token, id).getJSONObject("data")).forEach { (name, value) -> start.putExtra(name, value) }
        assertEquals("/inbox", herald.opened(start))
        assertNull(herald.opened(start))
        eventually { assertEquals(1, counts(id).getInt("opened")) }
    }

    @Test fun `nothing is shown between a log-out and its answer`() {
        val token = register()
        receive(token, JSONObject().put("title", "Hello"))
        assertEquals(1, phone.shown.size)
        between.offline = true
        herald.logout()
        assertEquals(emptyList<Any>(), phone.shown)
        herald.settled().get()
        receive(token, JSONObject().put("title", "For the former user"))
        assertEquals(emptyList<Any>(), phone.shown)
    }
}
