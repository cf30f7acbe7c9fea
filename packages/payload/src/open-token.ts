import { hkdfSync, timingSafeEqual } from "node:crypto";
import { DeviceId, type NotificationId, type Platform, type ProjectId } from "@herald/contracts";
import { hmacSha256 } from "./hmac-sha256.ts";

/** How long an open is taken after the push, in milliseconds: 30 days. */
export const openTokenLifetimeMs = 30 * 86_400_000;

/** A master key of open tokens. The first of a ring signs, all of them verify, so a key can be rotated. */
export type OpenKey = { readonly id: string; readonly secret: Uint8Array };

/** What an open token proves: this device of this platform got this notification of this project. */
export type OpenClaim = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly deviceId: DeviceId;
  readonly platform: Platform;
};

/** Why a token opens nothing: not one of ours, of another project or notification (or forged), or too old. */
export type OpenTokenFault = "malformed" | "unknown-key" | "forged" | "expired";

/**
 * Signs open tokens, `v2.<key id>.<device>.<platform's letter>.<expiry in s>.<mac>`, and verifies them. Those of version 1, which
 * had no platform, are verified as long as some may live.
 */
export type OpenTokens = {
  readonly sign: (claim: OpenClaim, now: Date) => string;
  /** {@link sign} for many devices: what is the same for all of them is done once. */
  readonly signer: (claim: Omit<OpenClaim, "deviceId">, now: Date) => (deviceId: DeviceId) => string;
  readonly verify: (
    claim: Pick<OpenClaim, "projectId" | "notificationId">,
    token: string,
    now: Date,
  ) => { deviceId: DeviceId; platform?: Platform } | { fault: OpenTokenFault };
  /** Bytes of every token that is signed now. */
  readonly length: number;
};

const macBytes = 32;

/** Enough for every project of a busy service; past it the oldest is derived again, at 5 µs. */
const cachedProjects = 4096;

type Sign = (message: string) => string;

/** One key per project, so that no project's tokens say anything about another's (HKDF, RFC 5869). */
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

const form =
  /^(?:v1\.([A-Za-z0-9_-]{1,16})\.(dev_[0-9a-z]{26})|v2\.([A-Za-z0-9_-]{1,16})\.(dev_[0-9a-z]{26})\.([iaw]))\.([0-9]{10})\.([A-Za-z0-9_-]{43})$/;

const same = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** Open tokens under a ring of at least one key. */
export const createOpenTokens = (keys: readonly [OpenKey, ...OpenKey[]]): OpenTokens => {
  const ring = new Map(keys.map((key) => [key.id, perProject(key.secret)]));
  const [signer] = keys;
  const signing = perProject(signer.secret);
  const signerOf: OpenTokens["signer"] = ({ projectId, notificationId, platform }, now) => {
    const mac = signing(projectId);
    const before = `v2.${signer.id}.`;
    const after = `.${letters[platform]}.${Math.floor((now.getTime() + openTokenLifetimeMs) / 1000)}.`;
    const origin = `${projectId}.${notificationId}`;
    return (deviceId) => {
      const open = before + deviceId + after;
      return open + mac(open + origin);
    };
  };
  return {
    sign: (claim, now) => signerOf(claim, now)(claim.deviceId),
    signer: signerOf,
    verify: ({ projectId, notificationId }, token, now) => {
      const [
        ,
        oldKeyId = "",
        oldDeviceId = "",
        keyId = oldKeyId,
        deviceId = oldDeviceId,
        letter = "",
        expiry = "",
        mac = "",
      ] = form.exec(token) ?? [];
      const device = DeviceId.safeParse(deviceId);
      if (!device.success) return { fault: "malformed" };
      const project = ring.get(keyId);
      if (project === undefined) return { fault: "unknown-key" };
      const signed = token.slice(0, -(mac.length + 1));
      if (!same(mac, project(projectId)(`${signed}.${projectId}.${notificationId}`))) return { fault: "forged" };
      if (Number(expiry) * 1000 <= now.getTime()) return { fault: "expired" };
      const platform = platforms[letter];
      return { deviceId: device.data, ...(platform === undefined ? {} : { platform }) };
    },
    length: `v2.${signer.id}.`.length + 30 + 1 + 1 + 1 + 10 + 1 + 43,
  };
};

/**
 * Reads a key ring as it stands in the configuration: `<id>:<base64 of 32 bytes or more>`, several joined by commas, the
 * signing one first. Says in words what is wrong with it.
 */
export const parseOpenKeys = (text: string): { keys: [OpenKey, ...OpenKey[]] } | { problem: string } => {
  const keys: OpenKey[] = [];
  for (const entry of text.split(",")) {
    const [, id = "", secret = ""] = /^([A-Za-z0-9_-]{1,16}):([A-Za-z0-9+/_-]+={0,2})$/.exec(entry.trim()) ?? [];
    if (id === "") return { problem: "each key must be <id>:<base64>, the id of 1 to 16 letters and digits" };
    const bytes = Buffer.from(secret, "base64");
    // HKDF gains nothing from more than it is given: a short key stays a weak key.
    if (bytes.length < macBytes) return { problem: `the key ${id} must be at least 32 bytes of base64` };
    if (keys.some((key) => key.id === id)) return { problem: `the key id ${id} stands twice` };
    keys.push({ id, secret: bytes });
  }
  const [first, ...rest] = keys;
  return first === undefined ? { problem: "at least one key is required" } : { keys: [first, ...rest] };
};
