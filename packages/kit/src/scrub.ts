/**
 * What must never be read in a log, found by its look, wherever it stands. A second line of defence: the first is that
 * it is never logged. Each pattern works on plain text and on a line of JSON.
 */
const patterns: readonly [RegExp, string][] = [
  [/\bhpt_[A-Za-z0-9_-]{8,}/g, "hpt_[masked]"],
  [/\bhdc_[A-Za-z0-9_-]{8,}/g, "hdc_[masked]"],
  [/\bhis_[A-Za-z0-9_-]{8,}/g, "his_[masked]"],
  [/\b(hop|hss|hoc)_[A-Za-z0-9_-]{8,}/g, "$1_[masked]"],
  // Open tokens: version, key id, device, platform since version 2, expiry, mac.
  [/\bv[12](?:\.[A-Za-z0-9_-]+){3,4}\.[A-Za-z0-9_-]{16,}/g, "[open token masked]"],
  // JSON Web Tokens.
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, "[jwt masked]"],
  [/\b(Bearer|Basic|vapid|WebPush) +[A-Za-z0-9._~+/=,-]{8,}/gi, "$1 [masked]"],
  [/-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----/gs, "[pem masked]"],
  [/\b([a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@"'\\]+@/gi, "$1[masked]@"],
  [/\b((?:https?|mongodb|nats|tls|wss?):\/\/[^\s?"'\\#]*)\?[^\s"'\\#]*/gi, "$1?[masked]"],
  // The driver quotes the value that is there twice.
  [/(dup key: )\{.*?\}/g, "$1[masked]"],
  // V8 quotes the text that is not JSON.
  [
    /Unexpected (?:token|string|number|identifier|non-whitespace).*? (?:is not valid JSON|in JSON at position \d+)/gs,
    "not valid JSON",
  ],
];

/** Every pattern has one of these, so most lines are looked at once. */
const suspicious =
  /hpt_|hdc_|his_|hop_|hss_|hoc_|v[12]\.|eyJ|bearer|basic|vapid|webpush|-----BEGIN|:\/\/|dup key|Unexpected /i;

/** The text with whatever looks like a secret masked. */
export const scrub = (text: string): string => {
  if (!suspicious.test(text)) return text;
  return patterns.reduce((rest, [pattern, mask]) => rest.replace(pattern, mask), text);
};
