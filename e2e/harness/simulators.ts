import type { Instance, Push, Rule, SimulatedChannel, WebPushSubscription } from "@herald/simulators";
import { expectStatus, request } from "@herald/testing";

export type SimulatorControl = {
  readonly url: string;
  /** The received pushes, oldest first. */
  pushes(filter?: {
    provider?: string;
    token?: string;
    status?: number;
    /** A cursor, or a time (inclusive). */
    since?: number | Date;
  }): Promise<Push[]>;
  /** Returns a function that resolves to the pushes since its previous call. The first call resolves to all. */
  follow(): () => Promise<Push[]>;
  /** Deletes the received pushes. Cursors stay valid. */
  forget(): Promise<void>;
  /** Replaces the rules for answers. */
  script(rules: readonly Rule[]): Promise<void>;
  /** Creates a subscription. The last part of its endpoint begins with `prefix`, which scripts match. */
  subscribe(prefix?: string): Promise<WebPushSubscription>;
  /** An app on an iPhone. Resolves to its tokens by push type; `alert` is the device token. */
  phone(
    app: string,
    more?: { ios?: string; controls?: string[]; activities?: string[]; updateToken?: "now" | "later" },
  ): Promise<Readonly<Record<string, string>>>;
  /** Live Activities on iPhones, as ActivityKit keeps them; of one token for updates or starts. */
  instances(token?: string): Promise<Instance[]>;
  /** The app starts a Live Activity itself. */
  startInstance(
    app: string,
    attributesType: string,
    more?: { readonly channel?: string; readonly count?: number },
  ): Promise<Instance>;
  /** The broadcast channels of an app. */
  channels(app: string): Promise<SimulatedChannel[]>;
  /** Another sender makes channels for the app. Resolves to their ids. */
  makeChannels(app: string, count: number): Promise<string[]>;
  /** ActivityKit gives the app another update token, or the first. */
  rotateInstance(id: string): Promise<Instance>;
};

/** The payload of a notification, in the same form for all providers. A push of a Live Activity has none of its fields. */
export type Payload = {
  readonly aps?: Record<string, unknown>;
  readonly notification_id: string;
  readonly project_id: string;
  readonly token: string;
  readonly link_to?: string;
  readonly data?: Record<string, string>;
  /** The device is asked for a receipt; in FCM's data a text. */
  readonly receipt?: number | string;
};

export const payloadOf = ({ provider, payload }: Push): Payload =>
  provider === "fcm" ? ((payload as { data?: Payload }).data ?? ({} as Payload)) : (payload as Payload);

/** Whether the provider accepted the push: only Web Push answers 201. */
export const wasAccepted = ({ status }: Push): boolean => status === 200 || status === 201;

/** The id of the device, from the open token in the payload. */
export const deviceOf = (push: Push): string => payloadOf(push).token.split(".")[2] ?? "";

export function simulatorControl(url: string): SimulatorControl {
  const read = async (query: Record<string, unknown>) => {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) search.set(name, value instanceof Date ? value.toISOString() : String(value));
    const { body } = expectStatus(await request(url, `GET /pushes?${search}`), 200);
    if (body.dropped > 0) throw new Error(`the simulator has forgotten ${body.dropped} pushes`);
    return body as { data: Push[]; next: number };
  };
  return {
    url,
    pushes: async (filter = {}) => (await read(filter)).data,
    follow() {
      let since = 0;
      return async () => {
        const { data, next } = await read({ since });
        since = next;
        return data;
      };
    },
    async forget() {
      expectStatus(await request(url, "DELETE /pushes"), 204);
    },
    async script(rules) {
      expectStatus(await request(url, "PUT /script", { body: rules }), 200);
    },
    phone: async (app, more = {}) => {
      const answer = await request(url, "POST /apns/phones", { body: { app, ...more } });
      return expectStatus(answer, 201).body.tokens;
    },
    instances: async (token) => {
      const query = token === undefined ? "" : `?token=${token}`;
      return expectStatus(await request(url, `GET /apns/instances${query}`), 200).body.data;
    },
    startInstance: async (app, attributesType, more = {}) =>
      expectStatus(await request(url, "POST /apns/instances", { body: { app, attributesType, ...more } }), 201).body,
    channels: async (app) => {
      const { data } = expectStatus(await request(url, "GET /apns/channels"), 200).body;
      return data.filter((channel: SimulatedChannel) => channel.app === app);
    },
    makeChannels: async (app, count) => {
      const { data } = expectStatus(await request(url, "POST /apns/channels", { body: { app, count } }), 201).body;
      return data.map(({ id }: SimulatedChannel) => id);
    },
    rotateInstance: async (id) => expectStatus(await request(url, `POST /apns/instances/${id}/token`), 201).body,
    subscribe: async (prefix) => {
      const answer = await request(url, "POST /webpush/subscriptions", {
        body: prefix === undefined ? {} : { prefix },
      });
      return expectStatus(answer, 201).body;
    },
  };
}
