import { X509Certificate } from "node:crypto";
import type { z } from "zod";

/** One sentence that names the field: `private_key: must be …`. */
export type SettingsProblem = string;

export type CheckedSettings<T> =
  | { readonly ok: true; readonly settings: T }
  | { readonly ok: false; readonly problems: readonly SettingsProblem[] };

export type SettingsRules = {
  /** `HERALD_DISPATCH_CUSTOM_ENDPOINTS`: whether `endpoint` and `ca` may be given. */
  readonly customEndpoints: boolean;
  readonly now: Date;
};

/** All problems of a value that is not of its schema. */
export const schemaProblems = (error: z.ZodError): SettingsProblem[] =>
  error.issues.flatMap((issue) => {
    const at = issue.path.join(".");
    if (issue.code === "unrecognized_keys") return issue.keys.map((key) => `${at ? `${at}.` : ""}${key}: is not known`);
    return [`${at || "settings"}: ${issue.message}`];
  });

type Elsewhere = { readonly endpoint?: string | undefined; readonly ca?: string | undefined };

/** What may be shown of them: all. */
export const elsewhereView = ({ endpoint, ca }: Elsewhere): Record<string, string> => ({
  ...(endpoint !== undefined && { endpoint }),
  ...(ca !== undefined && { ca }),
});

/** `endpoint` and `ca` send credentials elsewhere, so they are the operator's to allow. */
export function elsewhereProblems({ endpoint, ca }: Elsewhere, { customEndpoints }: SettingsRules): SettingsProblem[] {
  const problems: SettingsProblem[] = [];
  if (!customEndpoints) {
    const why = "is not allowed here: the operator would have to set HERALD_DISPATCH_CUSTOM_ENDPOINTS=true";
    if (endpoint !== undefined) problems.push(`endpoint: ${why}`);
    if (ca !== undefined) problems.push(`ca: ${why}`);
    return problems;
  }
  if (endpoint !== undefined && !isOrigin(endpoint))
    problems.push("endpoint: must be an https URL of a host and a port alone, such as https://localhost:8443");
  if (ca !== undefined && parseCertificates(ca).length === 0)
    problems.push("ca: must be one or more certificates in PEM form");
  return problems;
}

const isOrigin = (endpoint: string): boolean => {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  return url?.protocol === "https:" && `${url.origin}/` === url.href;
};

/** The certificates of a PEM text; none when one of them does not parse. */
export function parseCertificates(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return [];
  }
}
