/** FCM and most push services store a message for at most four weeks. */
export const maxTtlSeconds = 28 * 86_400;

/**
 * `ttl: 0` means now or never: no provider may store the push. Herald has this long to hand it over; with no time at all, the notification
 * would expire on acceptance.
 */
export const nowOrNeverMs = 10_000;
