import { TabbedPage } from "../parts/tabbed-page.tsx";

const tabs = {
  general: "General",
  providers: "Providers",
  kinds: "Kinds",
  tokens: "Tokens",
  webhooks: "Webhooks",
  identity: "Identity keys",
  limits: "Limits",
};

export default function Settings() {
  return <TabbedPage title="Settings" path="/settings" tabs={tabs} />;
}
