import { ApnsSettings } from "@herald/contracts";
import {
  elsewhereProblems,
  elsewhereView,
  parseCertificates,
  parsePrivateKey,
  parseSettings,
  refuseProblems,
  type SettingsRules,
} from "../settings-problems.ts";

const [tokenAuth, certificateAuth] = ApnsSettings.options;

/** Checks new settings: that they are complete, and that their keys parse, match and have not expired. @throws HeraldError */
export function checkApnsSettings(input: unknown, rules: SettingsRules): ApnsSettings {
  // Chosen by the field `certificate`, so that the reported problems concern the intended kind of authentication.
  const byCertificate = typeof input === "object" && input !== null && "certificate" in input;
  if (byCertificate && "bundle_ids" in input)
    refuseProblems(["bundle_ids: needs a key (key_id, team_id); a certificate is for one app"]);
  const settings: ApnsSettings = parseSettings<ApnsSettings>(byCertificate ? certificateAuth : tokenAuth, input);
  refuseProblems([
    ...("certificate" in settings
      ? certificateProblems(settings, rules.now)
      : signingKeyProblems(settings.private_key)),
    ...elsewhereProblems(settings, rules),
  ]);
  return settings;
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
  if (key === undefined) return ["private_key: is not a private key in PEM form: put the text of Apple's .p8 file"];
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType === "ec" && curve === "prime256v1") return [];
  const kind = curve === undefined ? key.asymmetricKeyType : `${key.asymmetricKeyType} ${curve}`;
  return [`private_key: must be a P-256 key as in Apple's .p8 file; this one is ${kind}`];
}

function certificateProblems(settings: { certificate: string; private_key: string }, now: Date): string[] {
  const [certificate] = parseCertificates(settings.certificate);
  const key = parsePrivateKey(settings.private_key);
  const problems: string[] = [];
  if (certificate === undefined) problems.push("certificate: is not a certificate in PEM form");
  if (key === undefined) problems.push("private_key: is not an unencrypted private key in PEM form");
  if (certificate === undefined) return problems;
  if (key !== undefined && !certificate.checkPrivateKey(key))
    problems.push("certificate: does not belong to private_key");
  if (certificate.validToDate <= now)
    problems.push(`certificate: expired on ${certificate.validToDate.toISOString()}; put one that is valid`);
  if (certificate.validFromDate > now)
    problems.push(`certificate: is valid only from ${certificate.validFromDate.toISOString()}`);
  return problems;
}
