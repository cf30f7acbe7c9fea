import { expect, test } from "vitest";
import { socketErrorText } from "./socket-error-text.ts";

test.each([
  ["its message", "ECONNREFUSED", "connect ECONNREFUSED 192.0.2.1:443", "connect ECONNREFUSED 192.0.2.1:443"],
  ["its message without a code", undefined, "the peer went away", "the peer went away"],
  [
    "its code where OpenSSL speaks",
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "40C7:error:0A00010B",
    "ERR_SSL_WRONG_VERSION_NUMBER",
  ],
  ["its message where only the end is alike", "X_ERR_SSL_", "as it is", "as it is"],
  ["its code where it has no message", "ECONNRESET", "", "ECONNRESET"],
  ["its name where it has neither", undefined, "", "TypeError"],
])("an error is told by %s", (_, code, message, words) => {
  expect(socketErrorText(Object.assign(new TypeError(message), code === undefined ? {} : { code }))).toBe(words);
});
