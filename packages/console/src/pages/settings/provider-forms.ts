import type { FieldSpec, FieldsOf, Values } from "../../parts/field-values.ts";
import { objectOf } from "../../parts/json.ts";

/** A server in place of the provider's, such as a simulator or your own gateway. */
const elsewhere = {
  endpoint: {
    label: "Endpoint",
    hint: "Needs HERALD_DISPATCH_CUSTOM_ENDPOINTS=true on dispatch.",
    under: "Use a different server",
  },
  ca: {
    label: "Certificate authority (PEM)",
    as: "area",
    under: "Use a different server",
    props: { minRows: 2, maxRows: 5 },
  },
} satisfies Readonly<Record<string, FieldSpec>>;

/** The fields of each provider's settings, and what its devices do without it. */
export const providerForms = {
  apns: {
    title: "Apple Push Notification service",
    empty: "iOS devices get no notifications until you add a key: a .p8 file from developer.apple.com, under Keys.",
    fields: {
      key_id: { label: "Key id", half: true },
      team_id: { label: "Team id", half: true },
      bundle_id: { label: "Bundle id" },
      bundle_ids: {
        label: "Further bundle ids",
        hint: "Other apps of the team, one a line. Their devices name their app.",
        as: "lines",
      },
      private_key: {
        label: "Private key (.p8)",
        hint: "Herald encrypts it and never shows it again.",
        placeholder: "-----BEGIN PRIVATE KEY-----",
        as: "area",
        file: ".p8,.pem",
        props: { minRows: 3, maxRows: 6, autoComplete: "off", spellCheck: false },
      },
      environment: { label: "Environment", as: "segments", choices: ["production", "sandbox"] },
      ...elsewhere,
    },
  },
  fcm: {
    title: "Firebase Cloud Messaging",
    empty:
      "Android devices get no notifications until you add a service account: Firebase, Project settings, Service accounts.",
    fields: {
      service_account: {
        label: "Service account (JSON)",
        hint: "The file from Firebase. Herald encrypts its key and never shows it again.",
        as: "json",
        check: (text) =>
          text.trim() === "" || objectOf(text) ? undefined : "Paste the JSON file of a service account.",
        file: ".json",
        props: { minRows: 5, maxRows: 12 },
      },
      ...elsewhere,
    },
  },
  webpush: {
    title: "Web Push",
    empty: "Browsers get no notifications until you add it. Herald creates the keys and needs a contact address.",
    fields: {
      subject: {
        label: "Contact",
        hint: "Push services use it to contact you about problems.",
        placeholder: "mailto:push@example.com",
      },
      site: {
        label: "Site",
        hint: "The origin of your web app. With it, Safari shows notifications that have a title by itself, and a click opens the link there. Without it, Safari wakes your service worker each time.",
        placeholder: "https://shop.example.com",
      },
      public_key: { label: "Public key", under: "Use your own keys" },
      private_key: { label: "Private key", as: "secret", under: "Use your own keys" },
      ...elsewhere,
    },
  },
} as const satisfies Readonly<
  Record<string, { readonly title: string; readonly empty: string; readonly fields: FieldsOf<Values> }>
>;
