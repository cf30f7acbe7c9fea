import { createPrivateKey, type KeyObject } from "node:crypto";
import { ApnsSettings } from "@herald/contracts";
import {
  type CheckedSettings,
  elsewhereProblems,
  elsewhereView,
  parseCertificates,
  type SettingsProblem,
  type SettingsRules,
  schemaProblems,
} from "../settings-problems.ts";

const [tokenAuth, certificateAuth] = ApnsSettings.options;

/** Checks what an operator puts: that it is complete, that keys parse, fit together and are not out of date. */
export function checkApnsSettings(input: unknown, rules: SettingsRules): CheckedSettings<ApnsSettings> {
  // Chosen by the field that tells them apart, so that the problems are of the way that was meant.
  const byCertificate = typeof input === "object" && input !== null && "certificate" in input;
  const parsed = (byCertificate ? certificateAuth : tokenAuth).safeParse(input);
  if (!parsed.success) return { ok: false, problems: schemaProblems(parsed.error) };
  const settings: ApnsSettings = parsed.data;
  const problems = [
    ...("certificate" in settings
      ? certificateProblems(settings, rules.now)
      : signingKeyProblems(settings.private_key)),
    ...elsewhereProblems(settings, rules),
  ];
  return problems.length > 0 ? { ok: false, problems } : { ok: true, settings };
}

/** What may be shown: which key, whose, until when; never a key. */
export function apnsPublicView(settings: ApnsSettings): Record<string, string> {
  const { bundle_id, environment } = settings;
  const common = { bundle_id, environment, ...elsewhereView(settings) };
  if (!("certificate" in settings)) return { key_id: settings.key_id, team_id: settings.team_id, ...common };
  const [certificate] = parseCertificates(settings.certificate);
  if (certificate === undefined) return common;
  return {
    ...common,
    certificate_subject: certificate.subject.split("\n").join(", "),
    certificate_sha256: certificate.fingerprint256,
    expires_at: certificate.validToDate.toISOString(),
  };
}

function parseKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

function signingKeyProblems(pem: string): SettingsProblem[] {
  const key = parseKey(pem);
  if (key === undefined) return ["private_key: is not a private key in PEM form: put the text of Apple's .p8 file"];
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType === "ec" && curve === "prime256v1") return [];
  const kind = curve === undefined ? key.asymmetricKeyType : `${key.asymmetricKeyType} ${curve}`;
  return [`private_key: must be a P-256 key as in Apple's .p8 file; this one is ${kind}`];
}

function certificateProblems(settings: { certificate: string; private_key: string }, now: Date): SettingsProblem[] {
  const [certificate] = parseCertificates(settings.certificate);
  const key = parseKey(settings.private_key);
  const problems: SettingsProblem[] = [];
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
