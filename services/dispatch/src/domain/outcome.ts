import type { DeliveryReason, ProviderProblemReason } from "@herald/contracts";

/** Why a server was not reached. `detail` says it in words, with what to check. */
export type ConnectionProblem = {
  readonly reason: ProviderProblemReason;
  readonly host: string;
  readonly detail: string;
};

/** What a provider said about one device, or that it said nothing. `providerReason` is the provider's own word for it. */
export type Outcome =
  /** `providerId` is the provider's id of the message where Herald did not choose it. */
  | { readonly kind: "accepted"; readonly providerId?: string | undefined }
  /** `at`: since when the token is dead, where the provider says so. */
  | { readonly kind: "unregistered"; readonly at?: Date | undefined; readonly providerReason: string }
  /**
   * `notSent`: refused before anything left, so nothing is known of the provider. `tokenMismatch`: the provider did not take the credential
   * for this device, and of no other: the app that registers a device chooses its token, environment and kind.
   */
  | {
      readonly kind: "rejected";
      readonly reason: DeliveryReason;
      readonly providerReason: string;
      readonly notSent?: true | undefined;
      readonly tokenMismatch?: true | undefined;
    }
  /** The credential is refused, whatever the device: the provider is paused. Never what a device's own choices can bring about. */
  | { readonly kind: "misconfigured"; readonly providerReason: string }
  /**
   * `limit`: the provider works and was asked too often, by this sender or for this device. Without it the provider is in
   * trouble, or was not reached. `retryAfterMs` holds for this device, and with a limit of the sender for the whole server.
   */
  | ({
      readonly kind: "deferred";
      readonly retryAfterMs?: number | undefined;
      readonly limit?: "sender" | "device" | undefined;
      readonly providerReason: string;
    } & Unanswered)
  /** It was written and no answer came. */
  | ({ readonly kind: "unknown"; readonly providerReason: string } & Unanswered);

type Unanswered = {
  /** Why there was no connection. */
  readonly problem?: ConnectionProblem | undefined;
  /** Another server than the device's own was asked as well, and this is about that one: the device's own works. */
  readonly elsewhere?: true | undefined;
};
