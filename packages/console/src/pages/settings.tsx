import { Tabs } from "@mantine/core";
import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { Page } from "../parts/page.tsx";
import { texts } from "../texts.ts";

const tabs = ["general", "providers", "tokens", "webhooks", "identity"] as const;

export default function Settings() {
  const { id } = useProject();
  const navigate = useNavigate();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const current = tabs.find((tab) => path.includes(`/settings/${tab}`)) ?? "general";
  const pathOf = (tab: string | null) => `/p/${id}/settings${tab === "general" ? "" : `/${tab}`}`;
  return (
    <Page title={texts.nav.settings} name={texts.nav.settings}>
      <Tabs value={current} onChange={(tab) => void navigate({ to: pathOf(tab) })} mb="md">
        <Tabs.List className="tabs">
          {tabs.map((tab) => (
            <Tabs.Tab key={tab} value={tab}>
              {texts.settings.tabs[tab]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </Tabs>
      <Outlet />
    </Page>
  );
}
