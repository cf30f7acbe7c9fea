import {
  ActionIcon,
  Alert,
  AppShell,
  Burger,
  Button,
  Group,
  Menu,
  NavLink,
  SegmentedControl,
  Text,
  useMantineColorScheme,
  VisuallyHidden,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import { useProject } from "./api/clients.ts";
import { LiveEvents, useProbe } from "./api/live.tsx";
import { unreachable } from "./api/problems.ts";
import { browserStorage, lastProjectKey } from "./browser-storage.ts";
import { Icon, type IconName } from "./parts/icon.tsx";
import { PauseBanner, PauseSendsButton } from "./parts/pause.tsx";
import { ProjectMenu } from "./project-menu.tsx";
import { useHasRole, useHasRoleHere, useMayWrite, useSession } from "./session-context.tsx";
import { Brand } from "./sign-in.tsx";

const places: readonly { readonly name: IconName; readonly label: string; readonly path: string }[] = [
  { name: "overview", label: "Overview", path: "" },
  { name: "compose", label: "Compose", path: "/compose" },
  { name: "templates", label: "Templates", path: "/templates" },
  { name: "notifications", label: "Notifications", path: "/notifications" },
  { name: "trace", label: "Delivery trace", path: "/trace" },
  { name: "devices", label: "Devices", path: "/devices" },
  { name: "topics", label: "Topics", path: "/topics" },
  { name: "users", label: "Users", path: "/users" },
  { name: "settings", label: "Settings", path: "/settings" },
];
const operations = { name: "operations", label: "Operations", path: "/operations" } as const;
/** Of the operations, admins of one project may see its audit rows. */
const auditLog = { name: "operations", label: "Audit log", path: "/operations/audit" } as const;

/** The pages that the operator may see. */
const usePlaces = (): readonly (typeof places)[number][] => {
  const seesOperations = useHasRole("viewer");
  const seesAudit = useHasRoleHere("admin");
  return [...places, ...(seesOperations ? [operations] : seesAudit ? [auditLog] : [])];
};

const AccountMenu = () => {
  const { session, signOut } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu position="top-start" width={240} closeOnItemClick={false}>
      <Menu.Target>
        <Button
          variant="default"
          fullWidth
          justify="space-between"
          fw={400}
          px={10}
          rightSection={<Icon name="more" size={16} />}
        >
          <VisuallyHidden>Account: </VisuallyHidden>
          {session.name}
          <Text span inherit c="dimmed" ml={8}>
            {session.role}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Colours</Menu.Label>
        <SegmentedControl
          size="xs"
          fullWidth
          aria-label="Colours"
          value={colorScheme}
          onChange={(value) => setColorScheme(value as "auto" | "light" | "dark")}
          data={[
            { value: "auto", label: "System" },
            { value: "light", label: "Light" },
            { value: "dark", label: "Dark" },
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
          API reference
        </Menu.Item>
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
};

/** The frame of every page of a project: header, menu and banner. */
export const Shell = () => {
  const { id } = useProject();
  const [opened, { toggle, close }] = useDisclosure();
  const gone = useProbe();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(() => browserStorage.set(lastProjectKey, id), [id]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when the page changes
  useEffect(close, [path]);
  const own = path.replace(/^\/p\/[^/]+/, "").replace(/\/$/, "");
  return (
    <AppShell
      navbar={{ width: 216, breakpoint: "sm", collapsed: { mobile: !opened } }}
      header={{ height: { base: 48, sm: 0 } }}
      padding={0}
    >
      <AppShell.Header className="shell-nav" hiddenFrom="sm">
        <Group h="100%" px={12} gap={8} wrap="nowrap">
          <Burger opened={opened} onClick={toggle} size="sm" aria-label="Menu" />
          <Brand />
          <span className="grow" />
          <PauseSendsButton size="compact-sm" />
          {useMayWrite() && (
            <ActionIcon
              component={Link}
              to={`/p/${id}/compose`}
              aria-label="Compose"
              size="lg"
              variant="light"
              color="herald"
            >
              <Icon name="compose" />
            </ActionIcon>
          )}
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className="shell-nav" aria-label="Main">
        <AppShell.Section px={16} pt={16} pb={8} visibleFrom="sm">
          <Brand />
        </AppShell.Section>
        <AppShell.Section px={10} py={6}>
          <ProjectMenu />
        </AppShell.Section>
        <AppShell.Section grow px={10} py={6} style={{ overflowY: "auto" }}>
          {usePlaces().map(({ name, label, path: to }) => (
            <NavLink
              key={name}
              component={Link}
              to={`/p/${id}${to}`}
              label={label}
              leftSection={<Icon name={name} />}
              activeOptions={{ exact: to === "" }}
              active={to === "" ? own === "" : own === to || own.startsWith(`${to}/`)}
            />
          ))}
        </AppShell.Section>
        <AppShell.Section px={10} pt={6} pb={12}>
          <AccountMenu />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main>
        {gone && (
          <Alert
            icon={<Icon name="warning" />}
            radius={0}
            pos="sticky"
            top="var(--app-shell-header-offset, 0)"
            style={{ zIndex: 5 }}
          >
            {unreachable}
          </Alert>
        )}
        <LiveEvents key={id} gone={gone}>
          <PauseBanner />
          <Outlet />
        </LiveEvents>
      </AppShell.Main>
    </AppShell>
  );
};
