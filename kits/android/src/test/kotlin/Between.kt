package io.herald

import com.sun.net.httpserver.HttpExchange
import com.sun.net.httpserver.HttpServer
import java.net.InetSocketAddress
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger

/** A proxy before the running Herald. It can go offline, and answer in Herald's place. */
class Between(private val gateway: String) {
    class Answer(val status: Int, val headers: Map<String, String> = emptyMap(), val body: String = "")

    val requests = CopyOnWriteArrayList<String>()
    @Volatile var offline = false
    /** Herald gets the requests, and the phone no answers. */
    @Volatile var losesAnswers = false
    /** Requests without an answer yet. */
    val waiting: Int get() = begun.get()
    private val begun = AtomicInteger()
    /** Gets method and path; null: Herald answers. */
    @Volatile var script: (String) -> Answer? = { null }

    private val client = HttpClient.newHttpClient()
    private val threads = Executors.newCachedThreadPool()
    private val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0).apply {
        executor = threads
        createContext("/") { it.use(::handle) }
        start()
    }
    val url = "http://127.0.0.1:${server.address.port}"

    fun stop() {
        server.stop(0)
        threads.shutdownNow()
    }

    private fun handle(exchange: HttpExchange) {
        // Closed without an answer.
        if (offline) return
        val line = "${exchange.requestMethod} ${exchange.requestURI}"
        requests.add(line)
        begun.incrementAndGet()
        val answer = try {
            script(line) ?: forward(exchange)
        } finally {
            begun.decrementAndGet()
        }
        if (losesAnswers) return
        answer.headers.forEach { (name, value) -> exchange.responseHeaders.set(name, value) }
        val bytes = answer.body.toByteArray()
        exchange.sendResponseHeaders(answer.status, if (bytes.isEmpty()) -1 else bytes.size.toLong())
        if (bytes.isNotEmpty()) exchange.responseBody.write(bytes)
    }

    private fun forward(exchange: HttpExchange): Answer {
        val request = HttpRequest.newBuilder(URI("$gateway${exchange.requestURI}"))
            .method(exchange.requestMethod, HttpRequest.BodyPublishers.ofByteArray(exchange.requestBody.readBytes()))
        for (name in listOf("Authorization", "Content-Type")) exchange.requestHeaders.getFirst(name)?.let { request.header(name, it) }
        val answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString())
        return Answer(answer.statusCode(), body = answer.body())
    }
}
