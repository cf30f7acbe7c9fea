import type {
  ApnsEnvironment,
  AppData,
  AppId,
  Capabilities,
  DeviceStatus,
  FcmTokenKind,
  InactiveReason,
  Platform,
  Provider,
  WebPushKeys,
} from "@herald/contracts";
import type { StoredToken } from "./further-tokens.ts";
import type { DeviceInstallation } from "./installations.ts";

/** The fields of a device that change. `facets`: its topics, its user and the indexed values of its data. */
export type DeviceState = DeviceInstallation & {
  readonly platform: Platform;
  /** Absent: the platform's own provider. */
  readonly provider?: Provider;
  readonly token: string;
  /** Time of the last registration with this token: token refusals about earlier pushes are ignored. */
  readonly tokenUpdatedAt: Date;
  readonly environment?: ApnsEnvironment;
  /** Absent: the app of the provider's settings. */
  readonly app?: AppId;
  readonly tokenKind?: FcmTokenKind;
  readonly tokens?: readonly StoredToken[] | undefined;
  readonly keys?: WebPushKeys;
  /** Id of the VAPID key of a Web Push subscription. */
  readonly vapidKeyId?: string;
  /** What its app's kit can do; absent: nothing. */
  readonly capabilities?: Capabilities;
  readonly status: DeviceStatus;
  /** A new token reactivates a device that was unregistered or stale, but not a device that was deactivated on request. */
  readonly inactiveReason?: InactiveReason;
  readonly metadata: AppData;
  readonly identifiers: AppData;
  readonly facets: readonly string[];
  readonly userId?: string;
  /** When its user was set. */
  readonly identifiedAt?: Date;
  /**
   * Its user came by a user token without proof that the request was the device's: a push token and an account of the app are enough for
   * that. Such a user gets pushes, but proves nothing.
   */
  readonly userClaimed?: true;
  /** `iat` of the last user token that the device accepted, in seconds since 1970; kept after a logout. */
  readonly userTokenIat?: number;
  /** When the app was last active, to within {@link seenEveryMs} if nothing else changed. */
  readonly lastSeenAt?: Date;
  /** When a notification was last opened on it, to the same precision. */
  readonly lastOpenedAt?: Date;
};

/** Apps register on each start. A registration that changes nothing is stored at most once in this time. */
export const seenEveryMs = 86_400_000;

export type UserChange =
  | { readonly by: "project"; readonly userId: string | null }
  | { readonly by: "token"; readonly userId: string; readonly issuedAt: number };

/** Whether a request that shows this user token is of the device, without its credential. */
export const provesUser = (user: UserChange | undefined, device: DeviceState): boolean =>
  user?.by === "token" && user.userId === device.userId && device.userClaimed === undefined;

/** `metadata` and `identifiers` are merge patches; absent fields stay as they are. */
export type CommonChange = {
  readonly keys?: WebPushKeys | undefined;
  /** The VAPID key of the subscription. `currentVapidKeyId`: the default for a new one. */
  readonly vapidKeyId?: string | undefined;
  readonly currentVapidKeyId?: string | undefined;
  readonly metadata?: AppData | undefined;
  readonly identifiers?: AppData | undefined;
  readonly user?: UserChange | undefined;
  /** Replaces the device's; empty: none. */
  readonly capabilities?: readonly string[] | undefined;
  /** Whether the project's backend sent it, and not an app. */
  readonly byProject?: boolean | undefined;
  /** The client proved only that it knows the push token of a known device. */
  readonly unproven?: boolean | undefined;
  /** Maximum JSON size of metadata and of identifiers, each; absent: the limit of {@link AppData}. */
  readonly maxBytes?: number | undefined;
};

export type Registration = CommonChange & {
  readonly token: string;
  readonly provider?: Provider | undefined;
  readonly installationId?: string | undefined;
  readonly topics: readonly string[];
  readonly environment?: ApnsEnvironment | undefined;
  readonly app?: AppId | undefined;
  readonly tokenKind?: FcmTokenKind | undefined;
  /** Set if the project's backend sent the device: it is not activated, and it does not count as seen. */
  readonly put?: { readonly status?: DeviceStatus | undefined; readonly lastSeenAt?: Date | undefined } | undefined;
};

export type Change = CommonChange & {
  readonly token?: string | undefined;
  /** Null: removes it. */
  readonly installationId?: string | null | undefined;
  /** Null: removes it. */
  readonly app?: AppId | null | undefined;
  readonly status?: DeviceStatus | undefined;
};

/** The new state, or problems as sentences that begin with the field. */
export type ChangeResult =
  | {
      readonly state: DeviceState;
      /** Field names as in the API, without `topics`. */
      readonly changed: readonly string[];
      /** Names of new topics. */
      readonly subscribed: readonly string[];
      /** Only times differ. */
      readonly same?: boolean;
    }
  | { readonly problems: readonly string[] }
  /** The user token is not newer than the last one that the device accepted. */
  | { readonly usedToken: true };
