import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { CardState, Instance } from "../types.ts";

const attributesType = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, "1 to 64 letters, digits and `.`, `_`, `-`");

/** Body of `POST /apns/instances`: the app starts a Live Activity itself. */
export const InstanceOptions = z.strictObject({
  app: z.string().regex(/^[A-Za-z0-9.-]{1,255}$/, "a bundle id such as com.example.app"),
  attributesType,
  attributes: z.record(z.string(), z.unknown()).default({}),
  contentState: z.record(z.string(), z.unknown()).default({}),
  /** Subscribed to this channel; absent: it has an update token. */
  channel: z.string().optional(),
  /** So many phones start it. */
  count: z.number().int().min(1).max(100_000).default(1),
});

/** When an app that a push started gets the update token of its card: at once, or on `POST /apns/instances/{id}/token`. */
export const UpdateToken = z.enum(["now", "later"]);
export type UpdateToken = z.infer<typeof UpdateToken>;

type Phone = {
  readonly app: string;
  readonly attributesType: string;
  readonly updateToken: UpdateToken;
  /** Since iOS 18. */
  readonly hasChannels: boolean;
};
type Aps = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Aps => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The Live Activities of simulated phones. A push that APNs accepts reaches its card at once. A card ignores a push with an older timestamp
 * than the last one that it applied, and every push after its end.
 */
export function createInstances(
  newToken: (app: string, pushType: string) => string,
  findChannel: (app: string, id: string) => { readonly last?: unknown } | undefined,
) {
  const starts = new Map<string, Phone>();
  const byToken = new Map<string, Instance>();
  const all = new Map<string, Instance>();

  const give = (instance: Instance): string => {
    const token = newToken(instance.app, "liveactivity");
    instance.token = token;
    byToken.set(token, instance);
    return token;
  };

  const add = (
    fields: Pick<Instance, "app" | "attributesType" | "attributes" | "startToken" | "channel">,
    first: CardState,
  ) => {
    const instance: Instance = {
      ...fields,
      id: randomBytes(8).toString("hex"),
      token: null,
      state: "active",
      timestamp: first.timestamp,
      alerts: 0,
      arrived: [],
      shown: [first],
    };
    all.set(instance.id, instance);
    return instance;
  };

  const stateOf = (aps: Aps): CardState => ({
    timestamp: Number(aps.timestamp),
    event: String(aps.event),
    contentState: aps["content-state"],
  });

  /** A device that subscribes gets the last message of its channel. */
  const catchUp = (instance: Instance): void => {
    const last = instance.channel === undefined ? undefined : findChannel(instance.app, instance.channel)?.last;
    if (isObject(last) && isObject(last.aps)) update(instance, last.aps);
  };

  const start = (startToken: string, phone: Phone, aps: Aps): void => {
    // iOS starts nothing without an alert, and nothing of another type.
    if (aps.event !== "start" || aps["attributes-type"] !== phone.attributesType || !isObject(aps.alert)) return;
    const { app, attributesType: type } = phone;
    const channel = aps["input-push-channel"];
    // Before iOS 18 a channel prevents the start, and so does one that the app does not have.
    if (channel !== undefined && !(phone.hasChannels && findChannel(app, String(channel)))) return;
    const subscribed = channel === undefined ? {} : { channel: String(channel) };
    const instance = add(
      { app, attributesType: type, attributes: aps.attributes, startToken, ...subscribed },
      stateOf(aps),
    );
    instance.arrived.push(stateOf(aps));
    instance.alerts++;
    catchUp(instance);
    if (aps["input-push-token"] === 1 && phone.updateToken === "now") give(instance);
  };

  const update = (instance: Instance, aps: Aps): void => {
    const state = stateOf(aps);
    if (state.event !== "update" && state.event !== "end") return;
    instance.arrived.push(state);
    if (instance.state === "ended" || state.timestamp < instance.timestamp) return;
    instance.timestamp = state.timestamp;
    if (isObject(aps.alert)) instance.alerts++;
    const last = JSON.stringify(instance.shown.at(-1)?.contentState);
    if (last !== JSON.stringify(state.contentState) || state.event === "end") instance.shown.push(state);
    if (state.event !== "end") return;
    instance.state = "ended";
    if (typeof aps["dismissal-date"] === "number") instance.dismissalDate = aps["dismissal-date"];
  };

  return {
    /** A token by which a push starts activities of a type. */
    startToken(phone: Phone): string {
      const token = newToken(phone.app, "liveactivity");
      starts.set(token, phone);
      return token;
    },

    /** The app starts one itself, with its token. */
    create({ contentState, count, channel, ...fields }: z.infer<typeof InstanceOptions>): Instance {
      // Every push is newer than what the app shows.
      const first = { timestamp: 0, event: "start", contentState };
      const made = Array.from({ length: count }, () => add({ ...fields, ...(channel && { channel }) }, first));
      for (const instance of made) channel === undefined ? give(instance) : catchUp(instance);
      return made[0] as Instance;
    },

    /** A broadcast that APNs accepted. `payload`: an object. */
    broadcast(channel: string, payload: { readonly aps: Aps }): void {
      for (const instance of all.values()) if (instance.channel === channel) update(instance, payload.aps);
    },

    /** Another token: the first one if it had none. The old one is good for nothing any more. Undefined: there is no such card. */
    rotate(id: string): Instance | undefined {
      const instance = all.get(id);
      if (!instance) return undefined;
      if (instance.token !== null) byToken.delete(instance.token);
      give(instance);
      return instance;
    },

    /** A push that APNs accepted, for any token. `payload`: its JSON, or an object. */
    deliver(token: string, payload: unknown): void {
      const key = token.toLowerCase();
      const phone = starts.get(key);
      const instance = byToken.get(key);
      if (!phone && !instance) return;
      const document: unknown = typeof payload === "string" ? JSON.parse(payload) : payload;
      if (!isObject(document) || !isObject(document.aps)) return;
      if (phone) start(key, phone, document.aps);
      else if (instance) update(instance, document.aps);
    },

    /** Oldest first; `token`: those with this token, for updates or of their start. */
    list: (token?: string): Instance[] =>
      [...all.values()].filter((one) => token === undefined || one.token === token || one.startToken === token),
    clear: () => all.clear(),
  };
}

export type Instances = ReturnType<typeof createInstances>;
