package io.herald

import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.util.Log
import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL

/** As FCM's own. */
private const val MAX_BYTES = 1_048_576
/** A picture is shown at about this width; larger ones are read at a half, a quarter and so on. */
private const val MAX_PIXELS = 1024
private const val TIMEOUT_MS = 5_000

/** Null if the image cannot be loaded within seconds, is larger than 1 MiB, or is none: the notification is shown without it. */
internal fun loadImage(address: String): Bitmap? = try {
    val connection = URL(address).openConnection() as HttpURLConnection
    connection.connectTimeout = TIMEOUT_MS
    connection.readTimeout = TIMEOUT_MS
    try {
        decoded(connection.inputStream.use(::limited))
    } finally {
        connection.disconnect()
    }
} catch (failed: Exception) {
    Log.w(TAG, "The image of a notification cannot be loaded", failed)
    null
}

private fun limited(stream: InputStream): ByteArray {
    val bytes = ByteArrayOutputStream()
    val part = ByteArray(16_384)
    val end = System.nanoTime() + TIMEOUT_MS * 1_000_000L
    while (true) {
        val read = stream.read(part)
        if (read < 0) return bytes.toByteArray()
        bytes.write(part, 0, read)
        if (bytes.size() > MAX_BYTES) throw IOException("larger than $MAX_BYTES bytes")
        if (System.nanoTime() > end) throw IOException("slower than $TIMEOUT_MS ms")
    }
}

private fun decoded(bytes: ByteArray): Bitmap? {
    val options = BitmapFactory.Options().apply { inJustDecodeBounds = true }
    BitmapFactory.decodeByteArray(bytes, 0, bytes.size, options)
    var sample = 1
    while (maxOf(options.outWidth, options.outHeight) / (sample * 2) >= MAX_PIXELS) sample *= 2
    return BitmapFactory.decodeByteArray(bytes, 0, bytes.size, BitmapFactory.Options().apply { inSampleSize = sample })
}
