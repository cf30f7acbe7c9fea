import { hkdfSync, timingSafeEqual } from "node:crypto";
import { DeviceId, type NotificationId, type Platform, type ProjectId } from "@herald/contracts";
import { hmacSha256 } from "./hmac-sha256.ts";

/** How long after the push an open is accepted, in milliseconds: 30 days. */
export const openTokenLifetimeMs = 30 * 86_400_000;

/** A master key of open tokens. The first of a ring signs, all of them verify, so a key can be rotated. */
export type OpenKey = { readonly id: string; readonly secret: Uint8Array };

/** What an open token proves: this device of this platform got this notification of this project. */
export type OpenClaim = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly deviceId: DeviceId;
  readonly platform: Platform;
  /** The push asked the device for a receipt; absent: it did not. */
  readonly asked?: boolean;
};

/** Why a token is refused. `forged` includes tokens of another project or notification. */
export type OpenTokenFault = "malformed" | "unknown-key" | "forged" | "expired";

export type OpenTokens = ReturnType<typeof createOpenTokens>;

const macBytes = 32;

/** Enough for every project of a busy service. Deriving a key again costs 5 µs. */
const cachedProjects = 4096;

type Sign = (message: string) => string;

/** One key per project (HKDF, RFC 5869), so that the tokens of one project reveal nothing about another project's key. */
const perProject = (secret: Uint8Array): ((projectId: ProjectId) => Sign) => {
  const known = new Map<ProjectId, Sign>();
  return (projectId) => {
    const found = known.get(projectId);
    if (found) return found;
    const derived = hkdfSync("sha256", secret, "", `herald open token ${projectId}`, macBytes);
    const mac = hmacSha256(new Uint8Array(derived));
    const sign: Sign = (message) => mac(message, "base64url");
    const [oldest] = known.keys();
    if (known.size >= cachedProjects && oldest !== undefined) known.delete(oldest);
    known.set(projectId, sign);
    return sign;
  };
};

const letters = { ios: "i", android: "a", web: "w" } as const satisfies Record<Platform, string>;
const platforms: Readonly<Record<string, Platform>> = { i: "ios", a: "android", w: "web" };

const form = /^v2\.([A-Za-z0-9_-]{1,16})\.(dev_[0-9a-z]{26})\.([iawIAW])\.([0-9]{10})\.([A-Za-z0-9_-]{43})$/;

const same = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));

/**
 * Signs open tokens, `v2.<key id>.<device>.<platform's letter>.<expiry in s>.<mac>`, and verifies them, with a ring of at least one key. A
 * capital letter says that the push asked for a receipt.
 */
export const createOpenTokens = (keys: readonly [OpenKey, ...OpenKey[]]) => {
  const ring = new Map(keys.map((key) => [key.id, perProject(key.secret)]));
  const [signer] = keys;
  const signing = perProject(signer.secret);
  const signerOf = (
    { projectId, notificationId, platform }: Pick<OpenClaim, "projectId" | "notificationId" | "platform">,
    now: Date,
  ) => {
    const mac = signing(projectId);
    const before = `v2.${signer.id}.`;
    const letter = letters[platform];
    const expiry = `.${Math.floor((now.getTime() + openTokenLifetimeMs) / 1000)}.`;
    const [plain, asking] = [`.${letter}${expiry}`, `.${letter.toUpperCase()}${expiry}`];
    const origin = `${projectId}.${notificationId}`;
    return (deviceId: DeviceId, asked = false): string => {
      const open = before + deviceId + (asked ? asking : plain);
      return open + mac(open + origin);
    };
  };
  return {
    sign: (claim: OpenClaim, now: Date): string => signerOf(claim, now)(claim.deviceId, claim.asked),
    /** `sign` for many devices of one notification and platform. */
    signer: signerOf,
    verify: (
      { projectId, notificationId }: Pick<OpenClaim, "projectId" | "notificationId">,
      token: string,
      now: Date,
    ): { deviceId: DeviceId; platform: Platform; asked: boolean; issuedAt: Date } | { fault: OpenTokenFault } => {
      const [, keyId = "", deviceId = "", letter = "", expiry = "", mac = ""] = form.exec(token) ?? [];
      const device = DeviceId.safeParse(deviceId);
      const lower = letter.toLowerCase();
      const platform = platforms[lower];
      if (!device.success || platform === undefined) return { fault: "malformed" };
      const project = ring.get(keyId);
      if (project === undefined) return { fault: "unknown-key" };
      const signed = token.slice(0, -(mac.length + 1));
      if (!same(mac, project(projectId)(`${signed}.${projectId}.${notificationId}`))) return { fault: "forged" };
      const expiresAt = Number(expiry) * 1000;
      if (expiresAt <= now.getTime()) return { fault: "expired" };
      return {
        deviceId: device.data,
        platform,
        asked: letter !== lower,
        issuedAt: new Date(expiresAt - openTokenLifetimeMs),
      };
    },
    /** Length in bytes of every token that the first key signs. */
    length: `v2.${signer.id}.`.length + 30 + 1 + 1 + 1 + 10 + 1 + 43,
  };
};
