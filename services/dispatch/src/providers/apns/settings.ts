import type { KeyObject, X509Certificate } from "node:crypto";
import { ApnsSettings } from "@herald/contracts";
import {
  elsewhereProblems,
  elsewhereView,
  parseCertificates,
  parsePrivateKey,
  parseSettings,
  refuseProblems,
  type SettingsRules,
  unreadableKey,
} from "../settings-problems.ts";

const [tokenAuth, certificateAuth] = ApnsSettings.options;

/**
 * Checks new settings: that they are complete, and that their keys parse, match and have not expired. Returns them with the certificates
 * in the order of TLS. @throws HeraldError
 */
export function checkApnsSettings(input: unknown, rules: SettingsRules): ApnsSettings {
  // Chosen by the field `certificate`, so that the reported problems concern the intended kind of authentication.
  const byCertificate = typeof input === "object" && input !== null && "certificate" in input;
  if (byCertificate && "bundle_ids" in input)
    refuseProblems(["bundle_ids: needs a key (key_id, team_id); a certificate is for one app"]);
  const settings: ApnsSettings = parseSettings<ApnsSettings>(byCertificate ? certificateAuth : tokenAuth, input);
  if (!("certificate" in settings)) {
    refuseProblems([...signingKeyProblems(settings.private_key), ...elsewhereProblems(settings, rules)]);
    return settings;
  }
  const key = parsePrivateKey(settings.private_key);
  const certificates = parseCertificates(settings.certificate);
  const chain = key === undefined ? certificates : chainOf(certificates, key);
  const [leaf] = chain;
  refuseProblems([
    ...(certificates.length === 0 ? ["certificate: is not a certificate in PEM form"] : []),
    ...(key === undefined
      ? [`private_key: ${unreadableKey(settings.private_key, "is not a private key in PEM form")}`]
      : []),
    ...(certificates.length > 0 && leaf === undefined ? [notOfKey(certificates.length)] : []),
    ...(leaf === undefined ? [] : certificateProblems(leaf, settings, rules.now)),
    ...elsewhereProblems(settings, rules),
  ]);
  return { ...settings, certificate: chain.join("") };
}

/** The part of the settings that may be shown: ids of keys, owners and expiry, never a private key. */
export function apnsPublicView(settings: ApnsSettings): Record<string, unknown> {
  const { bundle_id, environment } = settings;
  const common = { bundle_id, environment, ...elsewhereView(settings) };
  if (!("certificate" in settings)) {
    const { key_id, team_id, bundle_ids } = settings;
    return { key_id, team_id, ...common, ...(bundle_ids && { bundle_ids }) };
  }
  const [certificate] = parseCertificates(settings.certificate);
  if (certificate === undefined) return common;
  return {
    ...common,
    certificate_subject: certificate.subject.split("\n").join(", "),
    certificate_sha256: certificate.fingerprint256,
    expires_at: certificate.validToDate.toISOString(),
  };
}

function signingKeyProblems(pem: string): string[] {
  const key = parsePrivateKey(pem);
  if (key === undefined)
    return [`private_key: ${unreadableKey(pem, "is not a private key in PEM form: put the text of Apple's .p8 file")}`];
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType === "ec" && curve === "prime256v1") return [];
  const kind = curve === undefined ? key.asymmetricKeyType : `${key.asymmetricKeyType} ${curve}`;
  return [`private_key: must be a P-256 key as in Apple's .p8 file; this one is ${kind}`];
}

/**
 * The newest certificate of a key, then its issuers: the order that TLS wants. Files have them in any order, and may still have the
 * certificate before its renewal. Empty: none is of the key.
 */
function chainOf(certificates: readonly X509Certificate[], key: KeyObject): X509Certificate[] {
  const [leaf] = certificates
    .filter((certificate) => certificate.checkPrivateKey(key))
    .toSorted((one, other) => other.validToDate.getTime() - one.validToDate.getTime());
  const chain: X509Certificate[] = [];
  for (let next = leaf; next !== undefined; ) {
    const last: X509Certificate = next;
    chain.push(last);
    next = certificates.find((issuer) => last.checkIssued(issuer) && !chain.includes(issuer));
  }
  return chain;
}

const notOfKey = (count: number): string =>
  `certificate: ${count === 1 ? "does not belong" : `none of its ${count} certificates belongs`} to private_key`;

function certificateProblems(
  { subject, validToDate, validFromDate }: X509Certificate,
  { bundle_id, environment }: Pick<ApnsSettings, "bundle_id" | "environment">,
  now: Date,
): string[] {
  const problems: string[] = [];
  if (validToDate <= now) problems.push(`certificate: expired on ${validToDate.toISOString()}; put one that is valid`);
  if (validFromDate > now) problems.push(`certificate: is valid only from ${validFromDate.toISOString()}`);
  // Apple writes the app's id there; a certificate for calls alone has a topic of the app.
  const app = /^UID=(.+)$/m.exec(subject)?.[1];
  if (app !== undefined && app !== bundle_id && !app.startsWith(`${bundle_id}.`))
    problems.push(`bundle_id: is not the app of the certificate, which is for ${app}`);
  if (environment === "production" && /^CN=Apple Development /m.test(subject))
    problems.push("environment: must be `sandbox`: it is a development certificate");
  return problems;
}
