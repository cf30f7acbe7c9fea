package io.herald

import android.content.ComponentName
import java.io.File
import javax.crypto.KeyGenerator
import javax.xml.parsers.DocumentBuilderFactory
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner

@RunWith(RobolectricTestRunner::class)
class StateTest {
    private fun report(id: String, at: Long = 0) = Report(ReportKind.OPEN, id, "prj_1", "t", "track", at, at)

    @Test fun `is the same after it was stored`() {
        val state = State("p", "r", "{}", 1, "dev_1", "hdc_1", "u-1", true, mapOf("news" to "add"), listOf(report("ntf_1")), 2, 3)
        assertEquals(state, State.of(state.toJson()))
        assertEquals(State(), State.of(State().toJson()))
    }

    @Test fun `keeps the newest hundred reports of thirty days, and each once`() {
        val many = (1..120).fold(State()) { state, number -> state.adding(report("ntf_$number")) }
        assertEquals((21..120).map { "ntf_$it" }, many.reports.map { it.notification })
        assertEquals(many, many.adding(report("ntf_120", at = 5)))
        val late = State().adding(report("ntf_old")).adding(report("ntf_new", at = State.REPORT_AGE_MS))
        assertEquals(listOf("ntf_new"), late.reports.map { it.notification })
    }

    @Test fun `is sealed in the file, and unreadable under another key`() {
        val phone = Phone()
        fun sealer() = KeyGenerator.getInstance("AES").apply { init(256) }.generateKey().let { key -> AesGcmSealer { key } }
        val own = sealer()
        Store(phone.file, own).update { it.copy(credential = "hdc_secret", device = "dev_1") }
        assertFalse(String(phone.file.readBytes(), Charsets.ISO_8859_1).contains("hdc_secret"))
        assertEquals("hdc_secret", Store(phone.file, own).state.credential)
        assertEquals(State(), Store(phone.file, sealer()).state)
    }

    @Test fun `waits longer with each failure, an hour at most`() {
        assertEquals(listOf(30_000L, 60_000, 120_000), (1..3).map(::longestRetryMs))
        assertEquals(3_600_000L, longestRetryMs(50))
    }

    @Test fun `reads Retry-After in seconds and as a date`() {
        assertEquals(120_000L, retryAfterMs("120", 0))
        assertEquals(60_000L, retryAfterMs("Thu, 01 Jan 1970 00:01:00 GMT", 0))
        assertEquals(MAX_BLOCKED_MS, retryAfterMs("999999999", 0))
        for (nothing in listOf(null, "", "soon", "-5")) assertEquals(0L, retryAfterMs(nothing, 0))
    }

    /** Robolectric does not read it, so the names are compared here. */
    @Test fun `the manifest names the kit's components, and lets no other app call them`() {
        val manifest = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(File("src/aar/AndroidManifest.xml"))
        val components = listOf("service", "receiver", "activity").flatMap { kind ->
            manifest.getElementsByTagName(kind).let { found -> (0 until found.length).map { found.item(it).attributes } }
        }
        val names = components.map { it.getNamedItem("android:name").nodeValue }
        val classes = listOf(HeraldMessagingService::class, SettleJob::class, HeraldReceiver::class, HeraldActivity::class)
        assertEquals(classes.map { ComponentName("io.herald", it.java.name).className }.toSet(), names.toSet())
        assertTrue(components.all { it.getNamedItem("android:exported").nodeValue == "false" })
    }
}
