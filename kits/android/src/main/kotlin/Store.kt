package io.herald

import android.util.AtomicFile
import android.util.Log
import java.io.File

/** The state in memory and in one sealed file, which backups leave out. */
internal class Store(file: File, private val sealer: Sealer) {
    private val file = AtomicFile(file)

    /** A file that cannot be opened, such as one whose key is gone, is worth nothing: the device begins as a new one. */
    @Volatile var state: State = try {
        if (file.exists()) State.of(String(sealer.open(this.file.readFully()))) else State()
    } catch (unreadable: Exception) {
        Log.w(TAG, "The stored state cannot be read, so the device registers as a new one", unreadable)
        State()
    }
        private set

    /** Changes the state and stores it. If it cannot be stored, the change lasts as long as the process. */
    @Synchronized fun update(change: (State) -> State): State {
        val next = change(state)
        if (next == state) return next
        state = next
        try {
            write(sealer.seal(next.toJson().toByteArray()))
        } catch (failed: Exception) {
            Log.w(TAG, "The state cannot be stored", failed)
        }
        return next
    }

    private fun write(bytes: ByteArray) {
        val stream = file.startWrite()
        try {
            stream.write(bytes)
            file.finishWrite(stream)
        } catch (failed: Exception) {
            file.failWrite(stream)
            throw failed
        }
    }
}

internal const val TAG = "Herald"
