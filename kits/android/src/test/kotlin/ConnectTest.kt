package io.herald

import java.util.concurrent.CompletableFuture
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import org.json.JSONArray
import org.json.JSONObject
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner

@RunWith(RobolectricTestRunner::class)
class ConnectTest : AtHerald() {
    @Test fun `registers, keeps its device when the push token changes, and registers again after it was deleted`() {
        val first = register()
        val id = herald.status.device
        assertEquals(first, device().getString("token"))
        assertEquals("en-US", device().getJSONObject("identifiers").getString("current_locale"))

        // The process ends; the credential is read from the file.
        herald = phone.start()
        val second = register()
        assertEquals(id, herald.status.device)
        assertEquals(second, device().getString("token"))
        val calls = between.requests.size
        herald.settled().get()
        assertEquals("an unchanged device registers once a day", calls, between.requests.size)

        herald.topics.add("news")
        eventually { assertEquals(setOf("news"), herald.status.topics) }
        api("DELETE", "/devices/$id")
        phone.now += 86_400_001
        herald.settled().get()
        assertNotEquals(id, herald.status.device)
        assertEquals("news", device().getJSONArray("topics").getString(0))
    }

    @Test fun `logs in and out, and keeps user tokens out of the file`() {
        register()
        val userToken = System.getenv("HERALD_TEST_USER_TOKEN")
        herald.login(userToken)
        eventually { assertEquals("u-android", herald.status.user) }
        assertEquals("u-android", device().getString("user_id"))
        val key = object : Sealer {
            override fun seal(plain: ByteArray) = plain.also { assertFalse(String(it).contains(userToken)) }
            override fun open(sealed: ByteArray) = sealed
        }
        Store(phone.file.resolveSibling("plain"), key).update { State.of(it.toJson()) }

        herald.logout()
        eventually { assertFalse(herald.status.pending) }
        assertNull(herald.status.user)
        assertTrue(device().isNull("user_id"))
        herald.login("not.a.token")
        eventually { assertEquals("invalid", herald.status.problem?.slug?.substringAfterLast('-')) }
        assertFalse(herald.status.pending)
    }

    @Test fun `keeps every change while offline, and sends it in the next process`() {
        between.offline = true
        val token = pushToken()
        herald.register(token)
        herald.topics.add("news")
        herald.settled().get()
        assertEquals("offline", herald.status.problem?.slug)
        assertTrue(herald.status.pending)
        assertTrue(phone.job != null)

        between.offline = false
        herald = phone.start()
        Robolectric.buildService(SettleJob::class.java).create().get().onStartJob(null)
        eventually { assertFalse(herald.status.pending) }
        assertEquals(token, device().getString("token"))
        assertEquals(setOf("news"), herald.status.topics)
    }

    @Test fun `asks for another push token when the answer with its credential was lost`() {
        between.losesAnswers = true
        herald.register(pushToken())
        herald.settled().get()
        between.losesAnswers = false
        herald.replacePushToken = { herald.register(pushToken()) }
        herald.settled().get()
        eventually { assertTrue(herald.status.device != null) }
        assertEquals(herald.status.device, device().getString("id"))
    }

    @Test fun `drops what Herald refuses, says why, and goes on`() {
        register()
        herald.topics.add("no-such-topic")
        herald.topics.add("news")
        eventually { assertFalse(herald.status.pending) }
        assertEquals(setOf("news"), herald.status.topics)
        herald.open(mapOf("notification_id" to "ntf_01arz3ndektsv4rrffq69g5fav", "project_id" to project, "token" to "forged"))
        eventually { assertEquals("open-token-invalid", herald.status.problem?.slug) }
        assertFalse(herald.status.pending)
    }

    @Test fun `follows no redirect, and keeps what it would have sent`() {
        register()
        // Also where a hotel's network answers in Herald's place.
        between.script = { Between.Answer(307, mapOf("Location" to System.getenv("HERALD_TEST_REDIRECTING"))) }
        herald.topics.add("news")
        herald.open(mapOf("notification_id" to "ntf_01arz3ndektsv4rrffq69g5fav", "project_id" to project, "token" to "forged"))
        eventually { assertEquals(307, herald.status.problem?.status) }
        herald.settled().get()
        assertTrue(herald.status.pending)
        between.script = { null }
        herald.settled().get()
        eventually { assertEquals(setOf("news"), herald.status.topics) }
    }

    @Test fun `calls again as late as Herald asks, and longer after each failure`() {
        between.script = { Between.Answer(503, mapOf("Retry-After" to "120")) }
        herald.register(pushToken())
        eventually { assertEquals(503, herald.status.problem?.status) }
        assertTrue(phone.job!!.minLatencyMillis in 120_000..150_000)
        val calls = between.requests.size
        herald.topics.add("news")
        herald.settled().get()
        assertEquals("no call before Retry-After", calls, between.requests.size)
        between.script = { Between.Answer(429) }
        phone.now += 120_001
        herald.settled().get()
        assertEquals(calls + 1, between.requests.size)
        assertTrue(phone.job!!.minLatencyMillis in 0..60_000)
        between.script = { null }
        herald.settled().get()
        eventually { assertFalse(herald.status.pending) }
    }

    @Test fun `a pass without a call keeps the refusal of the one before`() {
        register()
        val held = CountDownLatch(1)
        between.script = { null.also { held.await() } }
        herald.register(pushToken())
        eventually { assertTrue(between.waiting > 0) }
        // The pass that registers sends the log-in too, so that the pass of the log-in has nothing to send.
        herald.login("not.a.token")
        val ended = herald.settled()
        held.countDown()
        ended.get()
        assertEquals("user-token-invalid", herald.status.problem?.slug)
        herald.topics.add("news")
        herald.settled().get()
        assertNull(herald.status.problem)
    }

    @Test fun `a device without a user switches a kind off, and nothing is kept while offline`() {
        assertEquals("not-registered", choices { herald.preferences.get(it) }.problem?.slug)
        val token = register()
        assertEquals(listOf(listOf("offers", "Offers", true, false, "default"), listOf("security", "Security", true, true, "default")),
            choices { herald.preferences.get(it) }.kinds.map { listOf(it.kind, it.title, it.on, it.critical, it.setBy) })
        val offers = choices { herald.preferences.set(mapOf("offers" to false), it) }.kinds.first()
        assertEquals(listOf(false, "device"), listOf(offers.on, offers.setBy))
        val refused = choices { herald.preferences.set(mapOf("security" to false, "no-such" to true), it) }
        assertEquals(422, refused.problem?.status)
        assertTrue(refused.problem!!.message!!.contains("preferences.kinds.no-such: the project declares no such kind"))
        assertFalse(choices { herald.preferences.set(emptyMap(), it) }.kinds.first().on)
        val content = JSONObject().put("title", "Hello").put("kind", "offers").put("dry_run", true).put("targets", JSONArray().put(herald.status.device))
        val skips = api("POST", "/notifications", JSONObject().put("notification", content)).getJSONObject("data").getJSONObject("skips")
        assertEquals(1, skips.getInt("muted"))

        // What the app calls by itself.
        val own = request("GET", "$gateway/api/v1/devices/${herald.status.device}/preferences", token = herald.credential!!)
        assertFalse(own.getJSONObject("data").getJSONArray("kinds").getJSONObject(0).getBoolean("on"))

        between.offline = true
        assertEquals("offline", choices { herald.preferences.set(mapOf("offers" to true), it) }.problem?.slug)
        assertFalse(herald.status.pending)
        between.offline = false
        between.script = { Between.Answer(503, mapOf("Retry-After" to "120")) }
        assertEquals(503, choices { herald.preferences.get(it) }.problem?.status)
        val calls = between.requests.size
        assertEquals("retry-later", choices { herald.preferences.get(it) }.problem?.slug)
        assertEquals("no call before Retry-After", calls, between.requests.size)
        between.script = { null }
        phone.now += 120_001
        assertFalse(choices { herald.preferences.get(it) }.kinds.first().on)

        // The backend deletes the device: the kit registers it again, and the new one has chosen nothing.
        val former = herald.status.device
        api("DELETE", "/devices/$former")
        assertTrue(choices { herald.preferences.get(it) }.kinds.first().on)
        assertNotEquals(former, herald.status.device)
        assertEquals(token, device().getString("token"))
    }

    private fun choices(ask: ((KindChoices) -> Unit) -> Unit): KindChoices =
        CompletableFuture<KindChoices>().also { found -> ask { found.complete(it) } }.get(60, TimeUnit.SECONDS)
}
