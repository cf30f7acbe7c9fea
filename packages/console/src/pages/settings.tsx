import { TabbedPage } from "../parts/tabbed-page.tsx";

const admins = { needs: "admin", can: "change anything here" } as const;

const tabs = {
  general: { label: "General", role: admins },
  providers: { label: "Providers", role: admins },
  kinds: { label: "Kinds", role: admins },
  tokens: { label: "Tokens", role: admins },
  webhooks: { label: "Webhooks", role: { needs: "operator", can: "change anything here" } },
  identity: { label: "Identity keys", role: admins },
  limits: { label: "Limits" },
} as const;

export default function Settings() {
  return <TabbedPage title="Settings" path="/settings" tabs={tabs} />;
}
