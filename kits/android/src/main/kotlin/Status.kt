package io.herald

/** What Herald has confirmed of this device. */
class Status internal constructor(
    /** The id that Herald gave the device, for the target `device:<id>`. */
    val device: String?,
    val user: String?,
    val topics: Set<String>,
    /** A change has not reached Herald yet. The kit keeps it and retries. */
    val pending: Boolean,
    /** Why the last call failed; null if it succeeded. */
    val problem: Problem?,
)
