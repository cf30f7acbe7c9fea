import { expect, test } from "vitest";
import { connectionProblem } from "./outcome.ts";

test.each([
  ["self-signed certificate in certificate chain", "certificate-untrusted"],
  ["certificate signature failure", "certificate-untrusted"],
  ["unable to get local issuer certificate", "certificate-untrusted"],
  ["unable to verify the first certificate", "certificate-untrusted"],
  ["certificate has expired", "certificate-expired"],
  ["certificate is not yet valid", "certificate-expired"],
  [
    "Hostname/IP does not match certificate's altnames: Host: a. is not in the cert's altnames: DNS:b",
    "certificate-name",
  ],
  ["ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL", "no-http2"],
  ["the peer does not speak HTTP/2", "no-http2"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "tls-refused"],
  ["Client network socket disconnected before secure TLS connection was established", "tls-refused"],
  ["getaddrinfo ENOTFOUND push.example", "name-not-found"],
  ["getaddrinfo EAI_AGAIN push.example", "name-not-found"],
  ["connect ECONNREFUSED 192.0.2.1:443", "connection-refused"],
  ["connect EHOSTUNREACH 192.0.2.1:443", "connection-timeout"],
  ["no HTTP/2 connection within 5000 ms", "connection-timeout"],
  ["no connection within 5000 ms", "connection-timeout"],
  ["no access token: certificate has expired (waited 20000 ms)", "certificate-expired"],
  ["the proxy refuses connections to push.example:8443 (403)", "proxy-refused"],
  ["the proxy asks for a user and password (407)", "proxy-refused"],
  ["the proxy refuses Herald's user and password (407)", "proxy-refused"],
  ["the proxy gives no connection to push.example:8443 (503)", "proxy-failed"],
  ["cannot reach the proxy: ECONNREFUSED", "proxy-unreachable"],
  ["cannot reach the proxy: ENOTFOUND", "proxy-unreachable"],
  ["cannot reach the proxy: ERR_SSL_WRONG_VERSION_NUMBER", "proxy-unreachable"],
  ["cannot reach the proxy: CERT_HAS_EXPIRED", "proxy-unreachable"],
  ["the proxy does not answer within 3 s", "proxy-unreachable"],
  ["the proxy does not answer as a proxy", "proxy-unreachable"],
  ["no access token: the proxy refuses connections to push.example:8443 (403)", "proxy-refused"],
  [
    "getaddrinfo ENOTFOUND push.example (Herald resolves this name itself, unless HERALD_PROXY_RESOLVES is set)",
    "name-not-found",
  ],
])("%s: %s", (says, reason) => {
  const problem = connectionProblem(says, "https://push.example:8443");
  expect(problem).toMatchObject({ reason, host: "push.example:8443" });
  expect(problem?.detail).toMatch(/^cannot reach push\.example:8443: .+\. [A-Z]/);
});

test.each(["the peer closed the connection", "GOAWAY with code 0", "no stream became free", "the transport is closed"])(
  "%s is about something else",
  (says) => expect(connectionProblem(says, "https://push.example")).toBeUndefined(),
);
