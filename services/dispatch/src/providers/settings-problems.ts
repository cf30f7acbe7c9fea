import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { HeraldError } from "@herald/kit";
import type { z } from "zod";

export type SettingsRules = {
  /** `HERALD_DISPATCH_CUSTOM_ENDPOINTS`: whether `endpoint` and `ca` may be given. */
  readonly customEndpoints: boolean;
  readonly now: Date;
};

/** Parses settings by their schema. @throws HeraldError `validation-failed` with all problems */
export const parseSettings = <Settings>(schema: z.ZodType<Settings>, input: unknown): Settings => {
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw new HeraldError("validation-failed", schemaProblems(parsed.error));
  return parsed.data;
};

/** Throws HeraldError `validation-failed` if there are problems. Each begins with its field: `private_key: must be …`. */
export const refuseProblems = (problems: readonly string[]): void => {
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
};

const schemaProblems = (error: z.ZodError): string[] =>
  error.issues.flatMap((issue) => {
    const at = issue.path.join(".");
    if (issue.code === "unrecognized_keys") return issue.keys.map((key) => `${at ? `${at}.` : ""}${key}: is not known`);
    return [`${at || "settings"}: ${issue.message}`];
  });

type Elsewhere = { readonly endpoint?: string | undefined; readonly ca?: string | undefined };

/** `endpoint` and `ca`, as they may be shown: in full. */
export const elsewhereView = ({ endpoint, ca }: Elsewhere): Record<string, string> => ({
  ...(endpoint !== undefined && { endpoint }),
  ...(ca !== undefined && { ca }),
});

/** Checks `endpoint` and `ca`. They send credentials to another host, so the operator must allow them. */
export function elsewhereProblems({ endpoint, ca }: Elsewhere, { customEndpoints }: SettingsRules): string[] {
  const problems: string[] = [];
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

/** The certificates of a PEM text. Empty when one of them does not parse. */
export function parseCertificates(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return [];
  }
}

/** Why no private key was read from a text, after its field's name; `wanted`: what the field is for, in words. */
export const unreadableKey = (pem: string, wanted: string): string => {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: .*ENCRYPTED/m.test(pem))
    return "is encrypted: put it without its passphrase, as `openssl pkey -in key.pem` writes it";
  if (/-----BEGIN [A-Z ]+-----\\n/.test(pem))
    return "has `\\n` where its lines end: put it with real line breaks, one backslash less in JSON";
  return wanted;
};

/** The private key of a PEM text; undefined when it does not parse. */
export function parsePrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
