import type { DeliveryReason } from "@herald/contracts";

/** What a provider said about one device, or that it said nothing. `providerReason` is the provider's own word for it. */
export type Outcome =
  /** `providerId` is the provider's id of the message where Herald did not choose it. */
  | { readonly kind: "accepted"; readonly providerId?: string | undefined }
  /** `at`: since when the token is dead, where the provider says so. */
  | { readonly kind: "unregistered"; readonly at?: Date | undefined; readonly providerReason: string }
  /** `unsent`: refused before anything left, so nothing is known of the provider. */
  | {
      readonly kind: "rejected";
      readonly reason: DeliveryReason;
      readonly providerReason: string;
      readonly unsent?: true | undefined;
    }
  /**
   * `foreign`: it may as well be about this one token, which a stranger can register. It speaks against the credential
   * only while that has not proven itself.
   */
  | { readonly kind: "misconfigured"; readonly providerReason: string; readonly foreign?: true | undefined }
  /**
   * `limit`: the provider works and was asked too often, by this sender or for this device. Without it the provider is in
   * trouble, or was not reached. `retryAfterMs` holds for this device, and with a limit of the sender for the whole server.
   */
  | {
      readonly kind: "deferred";
      readonly retryAfterMs?: number | undefined;
      readonly limit?: "sender" | "device" | undefined;
      readonly providerReason: string;
    }
  /** It was written and no answer came. */
  | { readonly kind: "unknown"; readonly providerReason: string };
