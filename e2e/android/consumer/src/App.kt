// The blocks of docs/how-to/connect-an-android-app.md: a test compares them.
package com.example.shop

import android.Manifest
import android.app.Activity
import android.content.Intent
import android.os.Bundle
import io.herald.Herald
import io.herald.HeraldMessagingService

class MainActivity : Activity() {
    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        Herald.get(this).opened(intent)?.let(::show) // the notification's link_to
    }

    override fun onNewIntent(intent: Intent) {
        super.onNewIntent(intent)
        Herald.get(this).opened(intent)?.let(::show)
    }

    fun connect(userToken: String) {
        requestPermissions(arrayOf(Manifest.permission.POST_NOTIFICATIONS), 1)
        HeraldMessagingService.start(this)
        Herald.get(this).login(userToken) // a JWT from your backend
        HeraldMessagingService.logout(this)
        Herald.get(this).topics.add("news")
        Herald.get(this).topics.remove("news")
        Herald.get(this).preferences.get { (kinds, problem) -> // each kind with kind, title, on, critical, setBy
            runOnUiThread { if (problem == null) showSwitches(kinds.filter { !it.critical }) }
        }
        Herald.get(this).preferences.set(mapOf("offers" to false)) // the others stay
        val device = Herald.get(this).status.device
        val credential = Herald.get(this).credential
        println("$device $credential")
    }

    private fun show(link: String) = println(link)

    private fun showSwitches(kinds: List<io.herald.KindChoice>) = kinds.forEach { println("${it.title} ${it.on} ${it.setBy}") }
}
