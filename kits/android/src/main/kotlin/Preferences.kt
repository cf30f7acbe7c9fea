package io.herald

/** A kind of notifications that the project has declared, and whether the device gets it. */
class KindChoice internal constructor(
    val kind: String,
    /** What people read beside its switch. */
    val title: String,
    val on: Boolean,
    /** It cannot be switched off. */
    val critical: Boolean,
    /** Whose choice [on] is: `device`, `user` or `default`. */
    val setBy: String,
)

/** No kinds beside a problem. */
class KindChoices internal constructor(val kinds: List<KindChoice>, val problem: Problem?) {
    operator fun component1(): List<KindChoice> = kinds

    operator fun component2(): Problem? = problem
}

/** Which kinds of notifications the device gets. Nothing is kept while Herald cannot be reached: [KindChoices.problem] says so. */
class Preferences internal constructor(private val ask: (Map<String, Boolean>, (KindChoices) -> Unit) -> Unit) {
    /** [done] is called on a thread of the kit. */
    fun get(done: (KindChoices) -> Unit) {
        ask(emptyMap(), done)
    }

    /** Switches kinds on or off, such as `mapOf("offers" to false)`; the others stay. [done] is called on a thread of the kit. */
    @JvmOverloads fun set(kinds: Map<String, Boolean>, done: (KindChoices) -> Unit = {}) {
        ask(kinds, done)
    }
}
