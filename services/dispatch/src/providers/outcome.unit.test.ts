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
])("%s: %s", (says, reason) => {
  const problem = connectionProblem(says, "https://push.example:8443");
  expect(problem).toMatchObject({ reason, host: "push.example:8443" });
  expect(problem?.detail).toMatch(/^cannot reach push\.example:8443: .+\. [A-Z]/);
});

test.each(["the peer closed the connection", "GOAWAY with code 0", "no stream became free", "the transport is closed"])(
  "%s is about something else",
  (says) => expect(connectionProblem(says, "https://push.example")).toBeUndefined(),
);
