import type { DeliveryReason, ProviderProblemReason } from "@herald/contracts";

/** Why a server was not reached, or who answers in its place. `detail` explains it to a person, and says what to check. */
export type ConnectionProblem = {
  readonly reason: ProviderProblemReason;
  readonly host: string;
  readonly detail: string;
};

/** The result of one push, with or without a response from the provider. `providerReason` is the provider's own error code. */
export type Outcome =
  /** `providerId`: the provider's id of the message, if Herald did not choose it. */
  | { readonly kind: "accepted"; readonly providerId?: string | undefined }
  /** `at`: since when the token is dead, if the provider tells. */
  | { readonly kind: "unregistered"; readonly at?: Date | undefined; readonly providerReason: string }
  /**
   * `notSent`: Herald refused the push itself, so the provider's health is not known. `tokenMismatch`: the provider refused the
   * credential for this device only. The app that registers a device chooses its token, environment and kind. `badToken`: the token
   * itself is wrong for ever, so its device is retired.
   */
  | {
      readonly kind: "rejected";
      readonly reason: DeliveryReason;
      readonly providerReason: string;
      readonly notSent?: true | undefined;
      readonly tokenMismatch?: true | undefined;
      readonly badToken?: true | undefined;
    }
  /**
   * The provider refuses the credential for every device. A device's own choices must never cause this. `detail`: what it says beside its
   * code, printable and short.
   */
  | { readonly kind: "misconfigured"; readonly providerReason: string; readonly detail?: string | undefined }
  /**
   * `retryAfterMs` holds for this device; with `limit: "sender"`, for the whole server. `unprocessed`: the provider certainly did not
   * process the push, so it uses no attempt.
   */
  | ({
      readonly kind: "deferred";
      readonly retryAfterMs?: number | undefined;
      readonly unprocessed?: true | undefined;
      readonly limit?: "sender" | "device" | undefined;
      readonly providerReason: string;
    } & Unanswered)
  /** The request was written, and no response came, or none that says what happened. */
  | ({ readonly kind: "unknown"; readonly limit?: "device" | undefined; readonly providerReason: string } & Unanswered);

/** A refusal of the credential as people read it: the provider's code, and what it says beside it. */
export const refusalText = ({ providerReason, detail }: Extract<Outcome, { kind: "misconfigured" }>): string =>
  detail === undefined ? providerReason : `${providerReason}: ${detail}`;

/**
 * `limit`: the server works. It gets too much from this `sender`, or its answer concerns this `device` alone. Without `limit`, the server
 * fails or was not reached.
 */
type Unanswered = {
  /** Why the provider was not reached. */
  readonly problem?: ConnectionProblem | undefined;
  /** The outcome is from a second server, tried after the device's own server. The device's own server works. */
  readonly elsewhere?: true | undefined;
};

/** Whether an outcome says that the token itself is dead or wrong for ever, not only this push. */
export const isTokenRefusal = (outcome: Outcome): boolean =>
  outcome.kind === "unregistered" || (outcome.kind === "rejected" && outcome.badToken === true);
