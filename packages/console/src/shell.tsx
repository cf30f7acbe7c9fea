import { ActionIcon, AppShell, Burger, Menu, NavLink, SegmentedControl, useMantineColorScheme } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useProject } from "./api/clients.ts";
import { LiveEvents, useProbe } from "./api/live.tsx";
import { useProjectName, useProjects } from "./api/projects.ts";
import { NewProject } from "./first-project.tsx";
import { lastProject } from "./last-project.ts";
import { Icon, type IconName } from "./parts/icon.tsx";
import { useSession } from "./session-context.tsx";
import { Brand } from "./sign-in.tsx";
import { texts } from "./texts/common.ts";

const places: readonly { readonly name: IconName & keyof typeof texts.nav; readonly path: string }[] = [
  { name: "overview", path: "" },
  { name: "compose", path: "/compose" },
  { name: "notifications", path: "/notifications" },
  { name: "trace", path: "/trace" },
  { name: "devices", path: "/devices" },
  { name: "topics", path: "/topics" },
  { name: "users", path: "/users" },
  { name: "settings", path: "/settings" },
  { name: "operations", path: "/operations" },
];

const ProjectMenu = () => {
  const { id } = useProject();
  const navigate = useNavigate();
  const [creating, setCreating] = useState(false);
  const { data } = useProjects();
  const name = useProjectName();
  return (
    <>
      <Menu position="bottom-start" width={240}>
        <Menu.Target>
          <button type="button" className="project-button" aria-label={`${texts.nav.project}: ${name}`}>
            <span className="cut grow">{name}</span>
            <Icon name="chevron" size={16} />
          </button>
        </Menu.Target>
        <Menu.Dropdown mah={360} style={{ overflowY: "auto" }}>
          {data?.data.map((project) => (
            <Menu.Item
              key={project.id}
              onClick={() => void navigate({ to: "/p/$project", params: { project: project.id } })}
              rightSection={project.id === id ? <Icon name="check" size={14} /> : null}
            >
              <span className="break">{project.name}</span>
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item leftSection={<Icon name="plus" size={16} />} onClick={() => setCreating(true)}>
            {texts.nav.newProject}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <NewProject opened={creating} onClose={() => setCreating(false)} />
    </>
  );
};

const AccountMenu = () => {
  const { session, signOut } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu position="top-start" width={240} closeOnItemClick={false}>
      <Menu.Target>
        <button type="button" className="project-button">
          <span className="hidden">{texts.nav.account}: </span>
          <span className="grow cut">{session.name}</span>
          <span className="muted">{session.role}</span>
          <Icon name="more" size={16} />
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{texts.nav.colors}</Menu.Label>
        <SegmentedControl
          size="xs"
          fullWidth
          aria-label={texts.nav.colors}
          value={colorScheme}
          onChange={(value) => setColorScheme(value as "auto" | "light" | "dark")}
          data={[
            { value: "auto", label: texts.nav.system },
            { value: "light", label: texts.nav.light },
            { value: "dark", label: texts.nav.dark },
          ]}
        />
        <Menu.Divider />
        <Menu.Item
          component="a"
          href="/docs"
          target="_blank"
          rel="noreferrer"
          rightSection={<Icon name="external" size={14} />}
        >
          {texts.nav.docs}
        </Menu.Item>
        <Menu.Item onClick={() => void signOut()}>{texts.nav.signOut}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
};

/** What stands around every page of a project. */
export const Shell = () => {
  const { id } = useProject();
  const [opened, { toggle, close }] = useDisclosure();
  const gone = useProbe();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(() => lastProject.set(id), [id]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when the page changes
  useEffect(close, [path]);
  const own = path.replace(/^\/p\/[^/]+/, "").replace(/\/$/, "");
  return (
    <AppShell
      navbar={{ width: 216, breakpoint: 760, collapsed: { mobile: !opened } }}
      header={{ height: { base: 48, "760px": 0 } }}
      padding={0}
    >
      <AppShell.Header className="shell-nav shell-head">
        <Burger opened={opened} onClick={toggle} size="sm" aria-label={texts.nav.menu} />
        <Brand />
        <span className="grow" />
        <ActionIcon
          component={Link}
          to={`/p/${id}/compose`}
          aria-label={texts.nav.compose}
          size="lg"
          variant="light"
          color="herald"
        >
          <Icon name="compose" />
        </ActionIcon>
      </AppShell.Header>
      <AppShell.Navbar className="shell-nav" aria-label={texts.nav.main}>
        <div className="nav-brand">
          <Brand />
        </div>
        <div className="nav-part">
          <ProjectMenu />
        </div>
        <AppShell.Section grow className="nav-part nav-places">
          {places.map(({ name, path: to }) => (
            <NavLink
              key={name}
              component={Link}
              to={`/p/${id}${to}`}
              label={texts.nav[name]}
              leftSection={<Icon name={name} />}
              activeOptions={{ exact: to === "" }}
              active={to === "" ? own === "" : own === to || own.startsWith(`${to}/`)}
              className="nav-link"
            />
          ))}
        </AppShell.Section>
        <div className="nav-part nav-foot">
          <AccountMenu />
        </div>
      </AppShell.Navbar>
      <AppShell.Main className="shell-main">
        {gone && (
          <div className="gone" role="alert">
            <Icon name="warning" /> {texts.errors.unreachable}
          </div>
        )}
        <LiveEvents key={id} gone={gone}>
          <Outlet />
        </LiveEvents>
      </AppShell.Main>
    </AppShell>
  );
};
