import { errors, importJWK, jwtVerify } from "jose";

const maxAgeSeconds = 86_400;
/** Clocks differ a little. */
const skewSeconds = 60;
const pointBytes = 65;

/** Why a push is not authorised: 401 for a missing or unreadable credential, 403 for an invalid one. */
const refuse = (status: 401 | 403, problem: string, reason?: "BadJwtToken") => ({
  status,
  problem: `authorization: ${problem}`,
  reason,
});

/** Names that the Internet does not have. */
const privateHosts = /(^|\.)(arpa|corp|example|home|internal|invalid|lan|local|localdomain|localhost|onion|test)$/i;

/** Whether Apple takes the subject of a token: one address, or a URL, of a host that the Internet may have. */
function isContact(subject: string): boolean {
  if (/[\s<>[\](),;]/.test(subject)) return false;
  const host = subject.startsWith("mailto:")
    ? /^mailto:[^@:]+@([^@:?]+)$/.exec(subject)?.[1]
    : subject.startsWith("https://")
      ? URL.parse(subject)?.hostname
      : undefined;
  return host?.includes(".") === true && !privateHosts.test(host);
}

/** `vapid t=…, k=…` with its parameters in any order. */
const parametersOf = (authorization: string) => {
  const rest = /^vapid +(.+)$/i.exec(authorization)?.[1];
  return rest === undefined
    ? undefined
    : new Map(rest.split(/\s*,\s*/).map((part) => [part.split("=", 1)[0], part.slice(part.indexOf("=") + 1)]));
};

interface Expected {
  /** Origin of the push resource. */
  readonly audience: string;
  /** The key that the subscription is bound to, base64url; undefined until it is bound. */
  readonly applicationServerKey: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The public key in a push's `authorization`, unverified; undefined if it has none. */
export const vapidKeyOf = (authorization: string | undefined): string | undefined =>
  authorization === undefined ? undefined : parametersOf(authorization)?.get("k");

/** Checks the `authorization` of a push against RFC 8292; undefined when it is valid. */
export async function checkVapid(
  authorization: string | undefined,
  { audience, applicationServerKey, now }: Expected,
): Promise<ReturnType<typeof refuse> | undefined> {
  if (authorization === undefined) return refuse(401, "missing");
  const parameters = parametersOf(authorization);
  const [t, k] = [parameters?.get("t"), parameters?.get("k")];
  if (!t || !k) return refuse(401, "not `vapid t=<JWT>, k=<public key>`");
  const point = Buffer.from(k, "base64url");
  if (point.length !== pointBytes || point[0] !== 4)
    return refuse(403, "k is not an uncompressed P-256 key in base64url");
  if (applicationServerKey !== undefined && !point.equals(Buffer.from(applicationServerKey, "base64url"))) {
    return refuse(403, "k is not the key that this subscription was made for");
  }
  try {
    const x = point.subarray(1, 33).toString("base64url");
    const y = point.subarray(33).toString("base64url");
    const key = await importJWK({ kty: "EC", crv: "P-256", x, y }, "ES256");
    const { payload } = await jwtVerify(t, key, {
      algorithms: ["ES256"],
      audience,
      requiredClaims: ["exp", "sub"],
      currentDate: new Date(now),
      clockTolerance: skewSeconds,
    });
    if (Number(payload.exp) > now / 1000 + maxAgeSeconds + skewSeconds)
      return refuse(403, "exp is more than 24 hours ahead");
    if (!isContact(payload.sub ?? ""))
      return refuse(403, "sub is not one mailto: or https: URL with a host of the Internet", "BadJwtToken");
    return undefined;
  } catch (error) {
    if (error instanceof errors.JOSEError) return refuse(403, error.message);
    // The point is not on the curve.
    return refuse(403, "k is not a key of P-256");
  }
}
