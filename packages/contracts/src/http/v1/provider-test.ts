import { z } from "zod";
import { named, withProblems } from "../../named.ts";
import {
  ApnsEnvironment,
  canonicalToken,
  FcmTokenKind,
  Platform,
  type Provider,
  platformOf,
  providersOf,
} from "../../platforms.ts";
import { PushToken, SubscriptionKeys, tokenProblems } from "./device-fields.ts";

export const TestPush = z.strictObject({
  token: PushToken,
  platform: Platform.optional().meta({
    description: "The device's platform, for a token of FCM, which serves every platform. Default: the provider's own",
  }),
  environment: ApnsEnvironment.optional(),
  token_kind: FcmTokenKind.optional(),
  keys: SubscriptionKeys.optional(),
});
export type TestPush = z.infer<typeof TestPush>;

const examples: Record<Provider, TestPush> = {
  apns: { token: "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0", environment: "production" },
  fcm: { token: "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1" },
  webpush: {
    token: "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABk",
    keys: {
      p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
      auth: "BTBZMqHH6r4Tts7J_aSIgg",
    },
  },
};

/** Body of `POST …/providers/{provider}/test`: one device of that provider. */
export const testPushOf = (provider: Provider) =>
  TestPush.overwrite((push) => ({ ...push, token: canonicalToken(push.token, provider) }))
    .superRefine(
      withProblems((push) => {
        const { platform = platformOf[provider] } = push;
        return providersOf[platform].includes(provider)
          ? tokenProblems({ ...push, platform, provider }, "token")
          : [{ path: ["platform"], message: `must be \`${platformOf[provider]}\`, the platform of ${provider}` }];
      }),
    )
    .meta({ id: `TestPush_${provider}`, examples: [examples[provider]] });

/** The provider's answer to a test push. */
export const TestedPush = named("TestedPush", {
  result: z
    .enum([
      "accepted",
      "token-refused",
      "credential-refused",
      "message-refused",
      "try-later",
      "not-reached",
      "no-answer",
    ])
    .meta({ description: "More may come" }),
  provider_reason: z.string().optional().meta({
    description: "The provider's own word, or what kept Herald from reaching it; absent: it gave none",
  }),
  provider_id: z.string().optional().meta({ description: "The provider's id of the message, where it gave one" }),
  detail: z.string().meta({ description: "What this means and what to check, in one or two sentences" }),
});
export type TestedPush = z.infer<typeof TestedPush>;
