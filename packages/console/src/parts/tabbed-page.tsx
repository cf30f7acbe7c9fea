import { Tabs } from "@mantine/core";
import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import { useProject } from "../api/clients.ts";
import { Page } from "./page.tsx";
import { RoleNote, type RoleNoteProps } from "./role-note.tsx";

/** `role`: what needs a role there. `hidden`: the operator may not see it. */
type Tab = { readonly label: string; readonly role?: RoleNoteProps; readonly hidden?: boolean };

type Props = {
  readonly title: string;
  /** Path below the project, such as `/settings`. It shows the first tab; each other tab has a path below it. */
  readonly path: string;
  readonly tabs: Readonly<Record<string, Tab>>;
};

/** A page whose parts are tabs, each with an address. */
export const TabbedPage = ({ title, path, tabs }: Props) => {
  const { id } = useProject();
  const navigate = useNavigate();
  const here = useRouterState({ select: ({ location }) => location.pathname });
  const [first = "", ...others] = Object.keys(tabs);
  const current = others.find((tab) => here.includes(`${path}/${tab}`)) ?? first;
  const role = tabs[current]?.role;
  const go = (tab: string | null) => navigate({ to: `/p/${id}${path}${tab === first ? "" : `/${tab}`}` });
  // On a phone the tabs scroll.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is selected
  useEffect(() => {
    document.querySelector('.tabs [aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return (
    <Page title={title}>
      <Tabs value={current} onChange={(tab) => void go(tab)} mb="md">
        <Tabs.List className="tabs">
          {Object.entries(tabs).map(
            ([tab, { label, hidden }]) =>
              !hidden && (
                <Tabs.Tab key={tab} value={tab}>
                  {label}
                </Tabs.Tab>
              ),
          )}
        </Tabs.List>
      </Tabs>
      {role && <RoleNote {...role} />}
      <Outlet />
    </Page>
  );
};
