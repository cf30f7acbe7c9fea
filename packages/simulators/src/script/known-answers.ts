/** Answers that real push services were seen to give, beside the plain ones that every simulator gives by itself. */

type KnownAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

const json = { "content-type": "application/json" };

/** ntfy, as UnifiedPush distributor. It never sends Retry-After, and its numbers begin with the status. */
const ntfy = (status: number, code: number, error: string, link?: string): KnownAnswer => ({
  status,
  headers: json,
  body: `${JSON.stringify({ code, http: status, error, ...(link && { link: `https://ntfy.sh/docs/${link}` }) })}\n`,
});

/** Mozilla's autopush. It says what is wrong by a number of its own. */
const autopush = (status: number, errno: number, error: string, message: string, retryAfter?: string): KnownAnswer => ({
  status,
  headers: { ...json, ...(retryAfter && { "retry-after": retryAfter }) },
  body: JSON.stringify({
    ...{ code: status, errno, error, message },
    more_info: "http://autopush.readthedocs.io/en/latest/http.html#error-codes",
  }),
});

/** Of 255 characters, which are the message's own name there. */
const longLocation = `https://updates.push.services.mozilla.com/m/${"gAAAAABn".padEnd(211, "k1")}`;

export const knownAnswers = {
  "ntfy-accepted": {
    status: 200,
    headers: json,
    body: `${JSON.stringify({ id: "hwQ2YpKdmg", time: 1_767_225_600, event: "message", topic: "upX", encoding: "base64" })}\n`,
  },
  "ntfy-too-many-requests": ntfy(429, 42_901, "limit reached: too many requests", "publish/#limitations"),
  "ntfy-daily-quota": ntfy(429, 42_908, "limit reached: daily message quota reached", "publish/#limitations"),
  "ntfy-no-subscriber": ntfy(507, 50_701, "cannot publish to UnifiedPush topic without previously active subscriber"),
  "ntfy-forbidden": ntfy(403, 40_301, "forbidden", "publish/#authentication"),
  "ntfy-not-found": ntfy(404, 40_401, "page not found"),
  "ntfy-too-large": ntfy(413, 41_301, "attachment too large, or bandwidth limit reached", "publish/#limitations"),
  "ntfy-internal-error": ntfy(500, 50_001, "internal server error"),
  "autopush-accepted": { status: 201, headers: { location: longLocation, ttl: "3600" }, body: "" },
  "autopush-bad-keys": autopush(400, 110, "Bad Request", "Invalid Crypto-Key header"),
  "autopush-bad-topic": autopush(400, 113, "Bad Request", "Topic must be no greater than 32 characters"),
  "autopush-other-key": autopush(401, 109, "Unauthorized", "VAPID public key mismatch"),
  "autopush-no-endpoint": autopush(404, 102, "Not Found", "Invalid token"),
  "autopush-unsubscribed": autopush(410, 106, "Gone", "No such subscription"),
  "autopush-expired": autopush(410, 103, "Gone", "Expired URL endpoint"),
  "autopush-too-large": autopush(413, 104, "Payload Too Large", "Data payload too large"),
  "autopush-unknown-error": autopush(500, 999, "Internal Server Error", "Unknown error"),
  "autopush-back-off": autopush(503, 201, "Service Unavailable", "Please try again later", "120"),
  "autopush-behind-nginx": {
    status: 502,
    headers: { "content-type": "text/html" },
    body: "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n",
  },
} as const satisfies Readonly<Record<string, KnownAnswer>>;

export type KnownAnswerName = keyof typeof knownAnswers;
export const knownAnswerNames = Object.keys(knownAnswers) as [KnownAnswerName, ...KnownAnswerName[]];
