package io.herald

import com.google.firebase.messaging.RemoteMessage
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.util.UUID
import org.json.JSONArray
import org.json.JSONObject
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Assume.assumeTrue
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner

/** The kit at a running Herald, which `npm run test:android` starts. Left out without it. */
@RunWith(RobolectricTestRunner::class)
class ConnectTest {
    private val gateway = System.getenv("HERALD_TEST_GATEWAY").orEmpty()
    private val project = System.getenv("HERALD_TEST_PROJECT").orEmpty()
    private val http = HttpClient.newHttpClient()
    private lateinit var between: Between
    private lateinit var phone: Phone
    private lateinit var herald: Herald

    @Before fun start() {
        assumeTrue("npm run test:android starts a Herald", gateway != "")
        between = Between(gateway)
        phone = Phone(between.url, project)
        herald = phone.start()
    }

    @After fun stop() {
        if (gateway != "") between.stop()
    }

    private fun request(method: String, url: String, body: JSONObject? = null): JSONObject {
        val request = HttpRequest.newBuilder(URI(url))
            .header("Authorization", "Bearer ${System.getenv("HERALD_TEST_TOKEN")}")
            .header("Content-Type", "application/json")
            .method(method, if (body == null) HttpRequest.BodyPublishers.noBody() else HttpRequest.BodyPublishers.ofString(body.toString()))
        val answer = http.send(request.build(), HttpResponse.BodyHandlers.ofString())
        check(answer.statusCode() < 400) { "$method $url answered ${answer.statusCode()}: ${answer.body()}" }
        return JSONObject(answer.body().ifEmpty { "{}" })
    }

    private fun api(method: String, path: String, body: JSONObject? = null) = request(method, "$gateway/api/v1$path", body)

    private fun device(): JSONObject = api("GET", "/devices/${herald.status.device}").getJSONObject("data")

    private fun eventually(check: () -> Unit) {
        val end = System.nanoTime() + 20_000_000_000
        while (true) {
            try {
                return check()
            } catch (failed: AssertionError) {
                if (System.nanoTime() > end) throw AssertionError("${failed.message}; the kit says: ${herald.status.problem?.message}", failed)
                Thread.sleep(100)
            }
        }
    }

    private fun pushToken() = "android:${UUID.randomUUID()}"

    private fun register(token: String = pushToken()): String {
        herald.register(token)
        eventually { assertFalse(herald.status.pending) }
        return token
    }

    /** Sends, and hands the simulator's push to the app as Firebase would. Returns the notification's id. */
    private fun receive(token: String, content: JSONObject): String {
        content.put("targets", JSONArray().put(herald.status.device))
        val id = api("POST", "/notifications", JSONObject().put("notification", content)).getJSONObject("data").getString("id")
        val message = message(token, id)
        val notification = message.optJSONObject("notification")?.let { RemoteMessage.Notification(texts(it)) }
        Robolectric.buildService(HeraldMessagingService::class.java).create().get()
            .onMessageReceived(RemoteMessage(texts(message.getJSONObject("data")), notification))
        return id
    }

    private fun message(token: String, id: String): JSONObject {
        var found: JSONObject? = null
        eventually {
            val pushes = request("GET", "${System.getenv("HERALD_TEST_SIMULATORS")}/pushes?token=$token").getJSONArray("data").objects()
            found = pushes.map { it.getJSONObject("payload") }.lastOrNull { it.getJSONObject("data").getString("notification_id") == id }
            assertTrue("no push came", found != null)
        }
        return found!!
    }

    private fun texts(from: JSONObject) = from.keys().asSequence().associateWith { from.getString(it) }

    private fun counts(id: String): JSONObject = api("GET", "/notifications/$id").getJSONObject("data").getJSONObject("counts")

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

    @Test fun `reports the open of a push that the system drew`() {
        val token = register()
        val content = JSONObject().put("title", "Hello").put("link_to", "/inbox").put("targets", JSONArray().put(herald.status.device))
        val id = api("POST", "/notifications", JSONObject().put("notification", content)).getJSONObject("data").getString("id")
        val start = android.content.Intent()
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
