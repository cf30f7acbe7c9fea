/** The kit's requests and Herald's answers, without fields that the kit does not use. A test checks them against the contracts. */

export type WebPushKeyAnswer = { readonly data: { readonly public_key: string } };

/** Identifiers and metadata of a device. */
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

/** `credential`: only for a new device. */
export type IdentificationAnswer = { readonly data: { readonly id: string }; readonly credential?: string };

export type LoginBody = { readonly device: { readonly user_token: string } };

export type LoginAnswer = { readonly data: { readonly user_id: string | null } };

export type OpenBody = { readonly project_id: string; readonly token: string };

/** The payload of a push. Later versions of Herald may add or omit fields. */
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
