/** What the kit says to Herald and reads from it, written small; a test holds it to the contracts. */

export type WebPushKeyAnswer = { readonly data: { readonly public_key: string } };

/** What a device registers with. */
export type DeviceData = {
  readonly identifiers: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
};

export type IdentificationBody = DeviceData & {
  readonly project_id: string;
  readonly platform: "web";
  readonly identifier: string;
  readonly previous_identifier?: string;
  readonly keys: { readonly p256dh: string; readonly auth: string; readonly vapid_key: string };
};

/** `credential`: only of a new device. */
export type IdentificationAnswer = { readonly data: { readonly id: string }; readonly credential?: string };

export type LoginBody = { readonly device: { readonly user_token: string } };

export type LoginAnswer = { readonly data: { readonly user_id: string | null } };

export type OpenBody = { readonly project_id: string; readonly token: string };

/** What arrives in the service worker. Later versions may say more, or leave something out. */
export type PushPayload = {
  readonly notification_id: string;
  readonly project_id: string;
  /** The open token. */
  readonly token: string;
  /** Absent: a silent push. */
  readonly notification?: { readonly title?: string; readonly body?: string; readonly tag?: string };
  readonly app_badge?: number;
  readonly link_to?: string;
  readonly data?: Readonly<Record<string, string>>;
};
