import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createLogger, type HeraldError } from "@herald/kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createIdentityProvider } from "./identity-provider.ts";
import { signInFailureName } from "./sign-in-failure.ts";

/** What a person and an operator learn of each failure, from answers of a provider over HTTP. */

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const kid = "k1";
const clientId = "herald";
const nonce = "n";
const lines: string[] = [];
const log = createLogger({ service: "test", level: "info", destination: { write: (line) => void lines.push(line) } });

type Answer = (response: ServerResponse) => void;
let answer: Answer;
let issuer: string;
const server = createServer((request, response) => {
  const json = (body: unknown) => response.setHeader("content-type", "application/json").end(JSON.stringify(body));
  if (request.url === "/token") return answer(response);
  if (request.url === "/keys") return json({ keys: [{ ...publicKey.export({ format: "jwk" }), kid, use: "sig" }] });
  return json({
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
  });
});
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const refuses =
  (status: number, body: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const seconds = () => Math.floor(Date.now() / 1_000);

/** A token whose claims differ from a good one's in these. */
const tells =
  (claims: Record<string, unknown>, alg = "RS256"): Answer =>
  (response) => {
    const good = { iss: issuer, sub: "u", aud: clientId, nonce, iat: seconds(), exp: seconds() + 60 };
    const signed = `${base64({ alg, kid })}.${base64({ ...good, ...claims })}`;
    const signature = alg === "none" ? "" : sign("sha256", Buffer.from(signed), privateKey).toString("base64url");
    refuses(200, { access_token: "a", token_type: "Bearer", id_token: `${signed}.${signature}` })(response);
  };

const failureOf = async (query: string): Promise<HeraldError> => {
  const provider = createIdentityProvider({
    ...{ issuer, clientId, clientSecret: "secret", scopes: "openid", groupsClaim: "groups", log },
    ...{ callback: "https://herald.example/admin/v1/sign-in/callback", home: "https://herald.example/console/" },
    now: () => new Date(),
  });
  lines.length = 0;
  return provider
    .finish(query, { state: "s", nonce, verifier: "v".repeat(43) }, () => undefined)
    .then(
      () => {
        throw new Error("signed in");
      },
      (error: HeraldError) => error,
    );
};

const basic = { "www-authenticate": 'Basic realm="provider"' };

test.for<[what: string, name: string, says: RegExp, logs: RegExp, answers: Answer]>([
  [
    "a wrong secret",
    "identity-provider-refused.client",
    /CLIENT_SECRET/,
    /invalid_client.*no such client/,
    refuses(401, { error: "invalid_client", error_description: "no such client" }),
  ],
  [
    "the same with a challenge",
    "identity-provider-refused.client",
    /CLIENT_SECRET/,
    /invalid_client.*no such client/,
    refuses(401, { error: "invalid_client", error_description: "no such client" }, basic),
  ],
  ["a challenge alone", "identity-provider-refused.client", /CLIENT_SECRET/, /invalid_client/, refuses(401, {}, basic)],
  [
    "a used code",
    "sign-in-expired",
    /sign in again/,
    /invalid_grant.*Code not valid/,
    refuses(400, { error: "invalid_grant", error_description: "Code not valid" }),
  ],
  [
    "another redirect address",
    "identity-provider-refused.redirect",
    /callback/,
    /Incorrect redirect_uri/,
    refuses(400, { error: "invalid_grant", error_description: "Incorrect redirect_uri" }),
  ],
  [
    "a wrong secret, as Keycloak names it",
    "identity-provider-refused.client",
    /CLIENT_SECRET/,
    /unauthorized_client/,
    refuses(401, { error: "unauthorized_client" }),
  ],
  [
    "a client without the flow",
    "identity-provider-refused.flow",
    /code flow/,
    /unauthorized_client/,
    refuses(400, { error: "unauthorized_client" }),
  ],
  [
    "a wrong secret, in Keycloak's words",
    "identity-provider-refused.client",
    /CLIENT_SECRET/,
    /Invalid client or Invalid client credentials/,
    refuses(401, {
      error: "unauthorized_client",
      error_description: "Invalid client or Invalid client credentials",
    }),
  ],
  [
    "a session that Keycloak ended",
    "sign-in-expired",
    /sign in again/,
    /Session not active/,
    refuses(400, { error: "invalid_grant", error_description: "Session not active" }),
  ],
  ["an error that it made up", "identity-provider-refused", /weird/, /weird/, refuses(400, { error: "weird" })],
  ["a token for another client", "identity-token-invalid.audience", /another client/, /aud/, tells({ aud: "other" })],
  [
    "a token for two clients",
    "identity-token-invalid.audience",
    /another client/,
    /aud/,
    tells({ aud: [clientId, "other"] }),
  ],
  [
    "a token of another issuer",
    "identity-token-invalid.issuer",
    /another issuer/,
    /iss/,
    tells({ iss: "https://other.example" }),
  ],
  [
    "an old token",
    "identity-token-invalid.clock",
    /clocks/,
    /exp/,
    tells({ iat: seconds() - 900, exp: seconds() - 600 }),
  ],
  [
    "a token of tomorrow",
    "identity-token-invalid.clock",
    /clocks/,
    /^$/,
    tells({ iat: seconds() + 600, exp: seconds() + 900 }),
  ],
  ["a token of another sign-in", "identity-token-invalid.nonce", /another sign-in/, /nonce/, tells({ nonce: "m" })],
  ["a token without signature", "identity-token-invalid.signature", /not signed/, /alg/, tells({}, "none")],
  [
    "a token with a wrong signature",
    "identity-token-invalid.signature",
    /not signed/,
    /signature|alg/,
    tells({}, "PS256"),
  ],
  [
    "a page in place of an answer",
    "identity-provider-unavailable",
    /does not answer/,
    /OAUTH/,
    (response) => response.writeHead(500).end("<html>"),
  ],
])("%s", async ([_, name, says, logs, answers]) => {
  answer = answers;
  const failure = await failureOf("code=c&state=s");
  expect([signInFailureName(failure), failure.message]).toEqual([name, expect.stringMatching(says)]);
  expect(lines.join("")).toMatch(logs);
});

test.for([
  ["access_denied", "sign-in-not-permitted"],
  ["invalid_scope", "identity-provider-refused.scope"],
  ["unsupported_response_type", "identity-provider-refused.flow"],
  ["temporarily_unavailable", "identity-provider-unavailable"],
  ["login_required", "identity-provider-refused"],
  ["constructor", "identity-provider-refused"],
  ["__proto__", "identity-provider-refused"],
])("the provider leads back with %s", async ([error, name]) => {
  const failure = await failureOf(`error=${error}&state=s&error_description=said%1B`);
  expect(signInFailureName(failure)).toBe(name);
  expect(lines.join("")).toContain(`"error":"${error}","description":"said"`);
});

test("Keycloak leads back from a form that was left open for too long", async () => {
  const failure = await failureOf("error=temporarily_unavailable&state=s&error_description=authentication_expired");
  expect([signInFailureName(failure), failure.message]).toEqual([
    "sign-in-expired",
    expect.stringMatching(/took too long.*sign in again/),
  ]);
});
