package io.herald.reactnative

import expo.modules.kotlin.Promise
import expo.modules.kotlin.modules.Module
import expo.modules.kotlin.modules.ModuleDefinition
import io.herald.Herald
import io.herald.HeraldMessagingService
import io.herald.KindChoices
import io.herald.Problem
import io.herald.Status

/** Hands the calls of JavaScript to the kit for Android, which registers, draws and reports. */
class HeraldModule : Module() {
    private val context get() = requireNotNull(appContext.reactContext)
    private val herald get() = Herald.get(context)
    private var stop: () -> Unit = {}

    override fun definition() = ModuleDefinition {
        Name("Herald")
        Events("onChange", "onOpen")
        OnCreate { stop = herald.onChange { sendEvent("onChange", it.toMap()) } }
        OnDestroy { stop() }
        OnNewIntent { intent -> herald.opened(intent)?.let { sendEvent("onOpen", mapOf("link" to it)) } }

        Function("start") { HeraldMessagingService.start(context) }
        Function("takeLink") { appContext.currentActivity?.intent?.let(herald::opened) }
        AsyncFunction("register") { pushToken: String, promise: Promise -> after(promise) { herald.register(pushToken) } }
        AsyncFunction("login") { userToken: String, promise: Promise -> after(promise) { herald.login(userToken) } }
        AsyncFunction("logout") { promise: Promise -> after(promise) { HeraldMessagingService.logout(context) } }
        AsyncFunction("addTopic") { name: String, promise: Promise -> after(promise) { herald.topics.add(name) } }
        AsyncFunction("removeTopic") { name: String, promise: Promise -> after(promise) { herald.topics.remove(name) } }
        AsyncFunction("preferences") { kinds: Map<String, Boolean>, promise: Promise ->
            herald.preferences.set(kinds) { promise.resolve(it.toMap()) }
        }
        AsyncFunction("credential") { herald.credential }
        AsyncFunction("settle") { promise: Promise -> after(promise) {} }
        AsyncFunction("report") { kind: String, push: Map<String, String>, button: String?, promise: Promise ->
            after(promise) {
                when (kind) {
                    "received" -> herald.received(push)
                    "dismissed" -> herald.dismissed(push)
                    else -> herald.open(push, button)
                }
            }
        }
    }

    private fun after(promise: Promise, call: () -> Unit) {
        call()
        herald.settle { promise.resolve(it.toMap()) }
    }

    private fun KindChoices.toMap() = mapOf(
        "kinds" to kinds.map {
            mapOf("kind" to it.kind, "title" to it.title, "on" to it.on, "critical" to it.critical, "set_by" to it.setBy)
        },
        "problem" to problem?.toMap(),
    )

    private fun Problem.toMap() = mapOf("slug" to slug, "message" to message, "retry" to retry, "status" to status)

    private fun Status.toMap() = mapOf(
        "device" to device,
        "user" to user,
        "topics" to topics.toList(),
        "pending" to pending,
        "problem" to problem?.toMap(),
    )
}
