import { randomBytes } from "node:crypto";
import { z } from "zod";
import { type Refusal, refuse } from "../script/apns-reasons.ts";
import type { Phone } from "../types.ts";
import { createChannels } from "./channels.ts";
import { endingsOfPushTypes } from "./check-request.ts";
import { createInstances, type Instances, UpdateToken } from "./instances.ts";

/** The first iOS whose apps get a token of the type ("Registering your app with APNs" and the framework of each type). */
const sinceIos = {
  voip: 8,
  complication: 9,
  fileprovider: 11,
  location: 15,
  pushtotalk: 16,
  controls: 18,
  widgets: 26,
} as const;

const name = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, "1 to 64 letters, digits and `.`, `_`, `-`");

/** Body of `POST /apns/phones`. */
export const PhoneOptions = z.strictObject({
  /** The bundle id of the app on the phone. */
  app: z.string().regex(/^[A-Za-z0-9.-]{1,255}$/, "a bundle id such as com.example.app"),
  /** Absent: the newest. */
  ios: z
    .string()
    .regex(/^\d{1,2}(\.\d{1,2}){0,2}$/, "a version such as 18.0")
    .default("26.0"),
  /** The kinds of the controls that the user has placed; each has a token of its own. */
  controls: z.array(name).max(32).default([]),
  /** The types of attributes of its Live Activities; it has a token to start each, since iOS 17.2. */
  activities: z.array(name).max(32).default([]),
  /** Of activities that a push starts. */
  updateToken: UpdateToken.default("now"),
});

/** The tokens that simulated phones gave to their apps. Each is good for one topic, as Apple's are. */
export function createPhones() {
  const topics = new Map<string, string>();

  const newToken = (app: string, pushType: string): string => {
    const token = randomBytes(32).toString("hex");
    topics.set(token, app + endingsOfPushTypes[pushType]);
    return token;
  };

  const channels = createChannels({ broadcast: (...sent) => instances.broadcast(...sent) });
  const instances: Instances = createInstances(newToken, channels.find);

  return {
    instances,
    channels,

    create({ app, ios, controls, activities, updateToken }: z.infer<typeof PhoneOptions>): Phone {
      const version = Number.parseInt(ios, 10);
      const startsByPush = Number.parseFloat(ios) >= 17.2;
      const types = Object.entries(sinceIos).flatMap(([type, since]) => (version >= since ? [type] : []));
      const keys = types.flatMap((type) => (type === "controls" ? controls.map((kind) => `controls/${kind}`) : [type]));
      const tokens = ["alert", ...keys].map((key) => [key, newToken(app, key.split("/", 1)[0] ?? key)] as const);
      const starts = (startsByPush ? activities : []).map(
        (type) =>
          [
            `liveactivity/${type}`,
            instances.startToken({ app, attributesType: type, updateToken, hasChannels: version >= 18 }),
          ] as const,
      );
      return { app, ios, tokens: Object.fromEntries([...tokens, ...starts]) };
    },

    /** Refuses a topic that the token is not for. Any topic goes with a token that no phone has given. */
    check(token: string, topic: string | undefined): Refusal | undefined {
      const own = topics.get(token.toLowerCase());
      return own === undefined || own === topic
        ? undefined
        : refuse("DeviceTokenNotForTopic", `apns-topic: the token is for ${own}`);
    },
  };
}
