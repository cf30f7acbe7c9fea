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
  readonly capabilities: string[];
};

/** `credential`: only for a new device. */
export type IdentificationAnswer = { readonly data: { readonly id: string }; readonly credential?: string };

export type LoginBody = { readonly device: { readonly user_token: string } };

export type LoginAnswer = { readonly data: { readonly user_id: string | null } };

/** A kind of notifications that the project has declared, and whether the device gets it. */
export type PreferencesAnswer = {
  readonly data: {
    readonly kinds: readonly {
      readonly kind: string;
      readonly title: string;
      readonly on: boolean;
      /** It cannot be switched off. */
      readonly critical: boolean;
      readonly set_by: "device" | "user" | "default";
    }[];
  };
};

/** Of an open, a receipt or a dismissal; only an open has a `button`. */
export type ReportBody = {
  readonly project_id: string;
  readonly token: string;
  /** Seconds since it happened. */
  readonly ago?: number;
  readonly button?: string;
};

export type PushButton = {
  readonly id: string;
  readonly title: string;
  readonly link_to?: string;
  /** False: a press is reported, and the site stays closed. */
  readonly opens?: boolean;
};

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
  readonly buttons?: readonly PushButton[];
  /** Herald asks for a receipt, at a random time within this many seconds. */
  readonly receipt?: number;
};
