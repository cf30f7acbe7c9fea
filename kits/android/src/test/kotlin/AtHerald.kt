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
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Assume.assumeTrue
import org.junit.Before
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner

/** A phone at a running Herald, which `npm run test:android` starts. Without it the tests are left out. */
@RunWith(RobolectricTestRunner::class)
abstract class AtHerald {
    protected val gateway = System.getenv("HERALD_TEST_GATEWAY").orEmpty()
    protected val project = System.getenv("HERALD_TEST_PROJECT").orEmpty()
    private val http = HttpClient.newHttpClient()
    protected lateinit var between: Between
    protected lateinit var phone: Phone
    protected lateinit var herald: Herald

    @Before fun start() {
        assumeTrue("npm run test:android starts a Herald", gateway != "")
        between = Between(gateway)
        phone = Phone(between.url, project)
        herald = phone.start()
    }

    @After fun stop() {
        if (gateway != "") between.stop()
    }

    protected fun request(
        method: String, url: String, body: JSONObject? = null, token: String = System.getenv("HERALD_TEST_TOKEN"),
    ): JSONObject {
        val request = HttpRequest.newBuilder(URI(url))
            .header("Authorization", "Bearer $token")
            .header("Content-Type", "application/json")
            .method(method, if (body == null) HttpRequest.BodyPublishers.noBody() else HttpRequest.BodyPublishers.ofString(body.toString()))
        val answer = http.send(request.build(), HttpResponse.BodyHandlers.ofString())
        check(answer.statusCode() < 400) { "$method $url answered ${answer.statusCode()}: ${answer.body()}" }
        return JSONObject(answer.body().ifEmpty { "{}" })
    }

    protected fun api(method: String, path: String, body: JSONObject? = null) = request(method, "$gateway/api/v1$path", body)

    protected fun device(): JSONObject = api("GET", "/devices/${herald.status.device}").getJSONObject("data")

    protected fun eventually(check: () -> Unit) {
        val end = System.nanoTime() + 60_000_000_000
        while (true) {
            try {
                return check()
            } catch (failed: AssertionError) {
                if (System.nanoTime() > end) throw AssertionError("${failed.message}; the kit says: ${herald.status.problem?.message}", failed)
                Thread.sleep(100)
            }
        }
    }

    protected fun pushToken() = "android:${UUID.randomUUID()}"

    protected fun register(token: String = pushToken()): String {
        herald.register(token)
        eventually { assertFalse(herald.status.pending) }
        return token
    }

    /** Sends, and hands the simulator's push to the app as Firebase would. Returns the notification's id. */
    protected fun receive(token: String, content: JSONObject): String {
        content.put("targets", JSONArray().put(herald.status.device))
        val id = api("POST", "/notifications", JSONObject().put("notification", content)).getJSONObject("data").getString("id")
        val message = message(token, id)
        val notification = message.optJSONObject("notification")?.let { RemoteMessage.Notification(texts(it)) }
        Robolectric.buildService(HeraldMessagingService::class.java).create().get()
            .onMessageReceived(RemoteMessage(texts(message.getJSONObject("data")), notification))
        return id
    }

    protected fun message(token: String, id: String): JSONObject {
        var found: JSONObject? = null
        eventually {
            val pushes = request("GET", "${System.getenv("HERALD_TEST_SIMULATORS")}/pushes?token=$token").getJSONArray("data").objects()
            found = pushes.map { it.getJSONObject("payload") }.lastOrNull { it.getJSONObject("data").getString("notification_id") == id }
            assertTrue("no push came", found != null)
        }
        return found!!
    }

    protected fun texts(from: JSONObject) = from.keys().asSequence().associateWith { from.getString(it) }

    protected fun counts(id: String): JSONObject = api("GET", "/notifications/$id").getJSONObject("data").getJSONObject("counts")
}
