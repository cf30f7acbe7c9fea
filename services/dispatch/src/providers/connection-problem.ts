import { type ProviderProblemReason, providerProblems } from "@herald/contracts";
import type { ConnectionProblem } from "../domain/outcome.ts";

/** What Node and OpenSSL say when a connection is not made, the first that fits; `words` where theirs are none. */
const causes: readonly { says: RegExp; reason: ProviderProblemReason; words?: string }[] = [
  { says: /ENOTFOUND|EAI_/, reason: "name-not-found" },
  { says: /ECONNREFUSED/, reason: "connection-refused" },
  { says: /EHOSTUNREACH|ENETUNREACH|connect ETIMEDOUT|no (HTTP\/2 )?connection within/, reason: "connection-timeout" },
  {
    says: /does not speak HTTP\/2|NO_APPLICATION_PROTOCOL/,
    reason: "no-http2",
    words: "the server does not speak HTTP/2",
  },
  { says: /does not match certificate's altnames/, reason: "certificate-name" },
  { says: /certificate (has expired|is not yet valid)/, reason: "certificate-expired" },
  // An alert is the server's word about this side's certificate.
  { says: /ERR_SSL_|EPROTO|before secure TLS connection was established/, reason: "tls-refused" },
  { says: /certificate|issuer/, reason: "certificate-untrusted" },
];

/** Long enough for a certificate's names, and short enough for a record that people read. */
const maxWords = 200;

/** Why there was no connection to a server, told from a transport's reason; undefined when that is about something else. */
export const connectionProblem = (reason: string, origin: string): ConnectionProblem | undefined => {
  const cause = causes.find(({ says }) => says.test(reason));
  if (!cause) return undefined;
  const { host } = new URL(origin);
  const words = cause.words ?? reason.replace(/[^\x20-\x7e]/g, "?").slice(0, maxWords);
  return { reason: cause.reason, host, detail: `cannot reach ${host}: ${words}. ${providerProblems[cause.reason]}` };
};
