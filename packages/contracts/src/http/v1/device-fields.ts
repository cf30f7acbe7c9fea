import { z } from "zod";
import type { PathProblem } from "../../named.ts";
import {
  AppId,
  apnsToken,
  canonicalToken,
  maxTokenLength,
  type Platform,
  Provider,
  providersOf,
  servingProvider,
  WebPushKeys,
} from "../../platforms.ts";
import { VapidPublicKey } from "../../vapid.ts";

export const tokenExample = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad";

/** A push token from its platform, as an app spells it: {@link canonicalToken} gives it the form that is stored. */
export const PushToken = z
  .string()
  .min(1, "may not be empty")
  .max(maxTokenLength, `must be at most ${maxTokenLength} characters`)
  .refine((token) => !/[\p{Cc}\s]/u.test(token), "may not contain spaces or control characters")
  .refine((token) => !token.includes("\ufffd"), "may not contain half an emoji or U+FFFD")
  .meta({
    id: "PushToken",
    description:
      "An APNs device token, an FCM token or Installation ID, or the endpoint of a Web Push subscription. One token in two spellings is one device: APNs tokens are stored in lower case, endpoints as browsers write URLs",
    examples: [tokenExample],
  });

/** A push token that names a known device, of whichever provider. */
export const KnownToken = PushToken.overwrite((token) => canonicalToken(token));

/** A device with its token in the form of its provider. */
export const withCanonicalToken = <Device extends TokenShape>(device: Device): Device => ({
  ...device,
  token: canonicalToken(device.token, servingProvider(device)),
});

export const InstallationId = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, "must be 1 to 128 visible ASCII characters")
  .meta({
    id: "InstallationId",
    description:
      "The app's own id of its installation, such as the Firebase Installation ID. Of two devices of the same platform, user and installation, one push goes out: through the platform's own provider. Counts for devices with a user, and for devices whose id the project's backend sent. At most 8 active devices of a platform and user may have it",
    examples: ["cHkUvHDRT0mVg6gvEbWFaR"],
  });

/** The provider that serves a device; part of its key. */
export const DeviceProvider = Provider.meta({
  description:
    "Which provider gave the push token. Default: the platform's own (`apns` for ios, `fcm` for android, `webpush` for web). `fcm` serves every platform",
});

/** The app of a device, for projects with several. */
export const DeviceApp = AppId.meta({
  description:
    "The app that gave the push token: its bundle id or package. Absent: the `bundle_id` of the APNs settings; other providers need none. On ios, pushes to an app that is neither `bundle_id` nor in `bundle_ids` fail with `app-not-configured`",
  examples: ["com.example.driver"],
});

/** A subscription's keys from its browser, and the project's key that it was made with. */
export const SubscriptionKeys = WebPushKeys.extend({
  vapid_key: VapidPublicKey.optional().meta({
    description:
      "The `applicationServerKey` that the subscription was made with. Absent: a known endpoint keeps its key, and a new one counts as made with the current key",
  }),
}).meta({ id: "SubscriptionKeys" });
export type SubscriptionKeys = z.infer<typeof SubscriptionKeys>;

export const apnsTokenProblem = "must be an APNs device token: 16 to 200 hexadecimal digits";

type TokenShape = {
  platform: Platform;
  provider?: Provider | undefined;
  token: string;
  environment?: unknown;
  token_kind?: unknown;
  keys?: unknown;
};

/** Problems of a token's form and of fields that belong to other providers. One sentence per problem. */
export const tokenProblems = (device: TokenShape, tokenField: string): PathProblem[] => {
  const problems: PathProblem[] = [];
  const provider = servingProvider(device);
  const known = providersOf[device.platform];
  if (!known.includes(provider))
    problems.push({
      path: ["provider"],
      message: `must be ${known.map((one) => `\`${one}\``).join(" or ")} for platform ${device.platform}`,
    });
  if (provider === "apns" && !apnsToken.test(device.token))
    problems.push({ path: [tokenField], message: apnsTokenProblem });
  if (provider === "fcm" && !/^[A-Za-z0-9_:.-]+$/.test(device.token))
    problems.push({
      path: [tokenField],
      message: "must be an FCM token or Installation ID: letters, digits and `_`, `:`, `.`, `-`",
    });
  if (provider === "webpush" && URL.parse(device.token)?.protocol !== "https:")
    problems.push({ path: [tokenField], message: "must be the subscription's endpoint, an https URL" });
  if (provider === "webpush" && device.keys === undefined)
    problems.push({ path: ["keys"], message: "is required for web: the subscription's `p256dh` and `auth`" });
  if (provider !== "webpush" && device.keys !== undefined)
    problems.push({ path: ["keys"], message: `is only for ${onlyFor(device, "web", "webpush")}` });
  if (provider !== "apns" && device.environment !== undefined)
    problems.push({ path: ["environment"], message: `is only for ${onlyFor(device, "ios", "apns")}` });
  if (provider !== "fcm" && device.token_kind !== undefined)
    problems.push({ path: ["token_kind"], message: "is only for platform android, or with provider fcm" });
  return problems;
};

/** The provider or platform that a field belongs to. */
const onlyFor = ({ platform }: TokenShape, own: Platform, provider: Provider): string =>
  platform === own ? `provider ${provider}` : `platform ${own}`;
