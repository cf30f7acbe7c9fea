/** Apple's and Google's codes for a refused credential, and what to check. Google adds its own words to some. */
const advice: ReadonlyMap<string, string> = new Map(
  Object.entries({
    InvalidProviderToken: "Check key_id and team_id, and that the key was not revoked in Apple's developer account.",
    ExpiredProviderToken: "Check the clock of the machine that runs dispatch: Apple takes tokens of the last hour.",
    MissingProviderToken:
      "The request reached Apple without a token. Check any proxy, or put a key instead of the certificate.",
    BadEnvironmentKeyIdInToken: "The key is for the other environment. Check `environment`, or use a key for both.",
    BadEnvironmentKeyInToken: "The key is for the other environment. Check `environment`, or use a key for both.",
    UnrelatedKeyIdInToken: "Connections to Apple are used with keys of several teams. Check team_id and key_id.",
    TopicDisallowed: "The key or certificate may not send to this app. Check bundle_id, and the topics of the key.",
    BadTopic: "Apple does not know the app. Check bundle_id.",
    MissingTopic: "The certificate is for several topics. Put a key, or a certificate for one app.",
    BadCertificate: "Put a certificate that Apple issued for pushes, and that is not revoked.",
    BadCertificateEnvironment: "The certificate is for the other environment. Check `environment`.",
    Forbidden: "Check that the key or certificate is valid in Apple's developer account.",
    UNAUTHENTICATED:
      "Check that the service account and its key exist, and the clock of the machine that runs dispatch.",
    ACCESS_TOKEN_EXPIRED: "Check the clock of the machine that runs dispatch.",
    PERMISSION_DENIED:
      "Enable the Firebase Cloud Messaging API (V1) in the Google Cloud console, and give the service account the role Firebase Cloud Messaging API Admin.",
    SERVICE_DISABLED: "Enable the Firebase Cloud Messaging API (V1) in the Google Cloud console.",
    IAM_PERMISSION_DENIED: "Give the service account the role Firebase Cloud Messaging API Admin.",
    invalid_grant:
      "Check that the service account and its key exist in the Google Cloud console, and the clock of the machine that runs dispatch.",
    unauthorized_client: "Check that the service account may use OAuth in the Google Cloud console.",
    "settings-unusable": "Herald cannot use the stored settings; the log of dispatch says why. Put them again.",
  }),
);

/** The words of Google's token endpoint tell causes apart that have one code. */
const descriptions: readonly (readonly [says: RegExp, advice: string])[] = [
  [/short-lived|iat and exp/i, "Check the clock of the machine that runs dispatch: Google says that it is wrong."],
  [
    /invalid jwt signature/i,
    "The key was deleted or belongs to another account. Put a new key of the service account.",
  ],
  [
    /account not found|invalid email|account is disabled/i,
    "The service account was deleted or disabled. Put the key of one that exists.",
  ],
];

const otherwise = "Check key, ids and environment of the provider's settings.";

/** What to check when the provider refuses the credential. `said`: its code, or code and words. */
export const refusalAdvice = (said: string): string => {
  const [code = ""] = said.split(":");
  const described = code === "invalid_grant" && descriptions.find(([says]) => says.test(said));
  return described ? described[1] : (advice.get(code) ?? otherwise);
};
