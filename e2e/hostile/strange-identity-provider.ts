import { createHmac, createSign, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

type Fields = Readonly<Record<string, unknown>>;
type KeyPair = { readonly kid: string; readonly privateKey: KeyObject; readonly publicKey: KeyObject };

const newKeyPair = (): KeyPair => ({
  kid: randomBytes(8).toString("hex"),
  ...generateKeyPairSync("rsa", { modulusLength: 2_048 }),
});

const part = (fields: Fields): string => Buffer.from(JSON.stringify(fields)).toString("base64url");

/** How a token is signed: its header, and the signature of what is signed. */
type Signing = { readonly header: Fields; readonly sign: (text: string) => string };

const rs256 = ({ kid, privateKey }: KeyPair, more: Fields = {}): Signing => ({
  header: { alg: "RS256", kid, ...more },
  sign: (text) => createSign("sha256").update(text).sign(privateKey, "base64url"),
});
const hs256 = (secret: string | Buffer, kid: string): Signing => ({
  header: { alg: "HS256", kid },
  sign: (text) => createHmac("sha256", secret).update(text).digest("base64url"),
});

export type Answer = {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
  readonly location?: string;
};

/** An OpenID provider that answers what a test says. It shows no login page and accepts each code once. */
export const startStrangeProvider = async (clientId: string, clientSecret: string) => {
  let keys = newKeyPair();
  const foreign = newKeyPair();
  const used = new Set<string>();
  let answer: () => Answer = () => ({ body: "{}" });
  let discovery: Fields | undefined = {};
  const asked = { discovery: 0, token: 0 };

  const server = createServer((request, response) => {
    const reply = ({ status = 200, type = "application/json", body, location }: Answer) =>
      response.writeHead(status, { "content-type": type, ...(location && { location }) }).end(body);
    const url = new URL(request.url ?? "/", issuer);
    if (url.pathname === "/.well-known/openid-configuration") {
      asked.discovery++;
      return reply(discovery ? { body: JSON.stringify({ ...metadata, ...discovery }) } : { status: 500, body: "{}" });
    }
    if (url.pathname === "/jwks") {
      const jwk = { ...keys.publicKey.export({ format: "jwk" }), kid: keys.kid, alg: "RS256", use: "sig" };
      return reply({ body: JSON.stringify({ keys: [jwk] }) });
    }
    asked.token++;
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const code = new URLSearchParams(body).get("code") ?? "";
      if (used.has(code)) return reply({ status: 400, body: '{"error":"invalid_grant"}' });
      used.add(code);
      return reply(answer());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    end_session_endpoint: `${issuer}/logout`,
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
    // The list contains algorithms that a client must refuse.
    id_token_signing_alg_values_supported: ["RS256", "HS256", "none"],
    token_endpoint_auth_methods_supported: ["client_secret_post"],
    authorization_response_iss_parameter_supported: false,
  };

  const token = (claims: Fields, { header, sign }: Signing = rs256(keys)): string => {
    const text = `${part({ typ: "JWT", ...header })}.${part(claims)}`;
    return `${text}.${sign(text)}`;
  };
  return {
    issuer,
    /** How often it was asked for its configuration, and for a token. */
    asked: (): Readonly<typeof asked> => ({ ...asked }),
    /** The claims of a good token for a nonce. */
    claims: (nonce: string, more: Fields = {}): Fields => {
      const now = Math.floor(Date.now() / 1_000);
      return { iss: issuer, aud: clientId, sub: "victim", nonce, iat: now, exp: now + 300, name: "Victim", ...more };
    },
    token,
    signings: {
      none: { header: { alg: "none" }, sign: () => "" } satisfies Signing,
      foreignKey: (more: Fields = {}) => rs256({ ...foreign, kid: keys.kid }, more),
      ownKeyInHeader: () => rs256(foreign, { jwk: foreign.publicKey.export({ format: "jwk" }), kid: undefined }),
      publicKeyAsSecret: () => hs256(keys.publicKey.export({ type: "spki", format: "pem" }), keys.kid),
      clientSecret: () => hs256(clientSecret, keys.kid),
    },
    answerWith: (next: () => Answer) => {
      answer = next;
    },
    answerToken: (idToken: string | undefined) => {
      const tokens = { access_token: "a", token_type: "Bearer", ...(idToken !== undefined && { id_token: idToken }) };
      answer = () => ({ body: JSON.stringify(tokens) });
    },
    /** Overrides what discovery answers; undefined: it fails. */
    discover: (fields: Fields | undefined) => {
      discovery = fields;
    },
    rotate: () => {
      keys = newKeyPair();
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};
