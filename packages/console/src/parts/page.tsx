import { Box, Flex, Group, Paper, Stack, Text, type TextProps } from "@mantine/core";
import { Fragment, type ReactNode, useEffect } from "react";
import { Status } from "./format.tsx";
import { PauseSendsButton } from "./pause.tsx";
import { RoleNote, type RoleNoteProps } from "./role-note.tsx";

type TitleProps = {
  readonly title: ReactNode;
  /** Beside the title, as soon as it is known. */
  readonly status?: string | undefined;
  /** Of the notification whose status it is. */
  readonly counts?: Parameters<typeof Status>[0]["counts"];
};

const Title = ({ title, status, counts }: TitleProps) => (
  <span className="with-icon">
    {title} {status !== undefined && <Status value={status} counts={counts} />}
  </span>
);

type PageProps = TitleProps & {
  /** The title of the browser's tab. Default: the page's. */
  readonly name?: string;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  /** What needs a role on this page. */
  readonly role?: RoleNoteProps;
  readonly children: ReactNode;
};

export const Page = ({ title, status, counts, name = String(title), about, actions, role, children }: PageProps) => {
  useEffect(() => {
    document.title = `${name} · Herald`;
  }, [name]);
  return (
    <Box maw={1320} mx="auto" px={{ base: 12, sm: 24 }} pt={{ base: 14, sm: 20 }} pb={48}>
      <Group gap="8px 16px" mb="md" mih={36}>
        <Text component="h1" className="grow" fz="xl" fw={640} lts="-0.01em">
          <Title title={title} status={status} counts={counts} />
        </Text>
        <Group gap={8}>
          {actions}
          <Box visibleFrom="sm">
            <PauseSendsButton size="sm" />
          </Box>
        </Group>
        {about && (
          <Text c="dimmed" w="100%" mt={-6}>
            {about}
          </Text>
        )}
      </Group>
      {role && <RoleNote {...role} />}
      {children}
    </Box>
  );
};

type PanelProps = Partial<TitleProps> & {
  readonly actions?: ReactNode;
  /** Filters of the rows, in place of a title. */
  readonly filters?: ReactNode;
  /** Without padding, for tables. */
  readonly flush?: boolean;
  readonly children: ReactNode;
};

export const Panel = ({ title, status, actions, filters, flush = false, children }: PanelProps) => (
  <Paper component="section" className="panel" radius="md" miw={0}>
    {(filters || title) && (
      <Flex
        component="header"
        wrap="wrap"
        align="center"
        gap={8}
        px="md"
        py={10}
        mih={45}
        style={{ borderBottom: "1px solid var(--line)" }}
      >
        {filters}
        {title && (
          <>
            <Text component="h2" className="grow" fz="md" fw={620}>
              <Title title={title} status={status} />
            </Text>
            {actions}
          </>
        )}
      </Flex>
    )}
    {flush ? (
      children
    ) : (
      <Box px="md" py={14}>
        {children}
      </Box>
    )}
  </Paper>
);

export type EmptyProps = { readonly title: string; readonly text?: ReactNode; readonly action?: ReactNode };

/** Shown in place of an empty list: what to do first. */
export const Empty = ({ title, text, action }: EmptyProps) => (
  <Stack align="center" gap={8} px={20} py={40} ta="center" c="dimmed">
    <Text fw={600} c="var(--mantine-color-text)">
      {title}
    </Text>
    {text && <Text maw="46ch">{text}</Text>}
    {action}
  </Stack>
);

/** Names with their values. A value that is undefined or false is left out with its name. */
export const Facts = ({ facts }: { readonly facts: Readonly<Record<string, ReactNode>> }) => (
  <Box
    component="dl"
    m={0}
    fz="sm"
    display="grid"
    style={{ gridTemplateColumns: "minmax(110px, max-content) minmax(0, 1fr)", gap: "6px 16px" }}
  >
    {Object.entries(facts).map(
      ([name, value]) =>
        value !== undefined &&
        value !== false && (
          <Fragment key={name}>
            <dt className="muted">{name}</dt>
            <Box component="dd" m={0} style={{ overflowWrap: "anywhere" }}>
              {value}
            </Box>
          </Fragment>
        ),
    )}
  </Box>
);

/** A remark in small, pale letters. */
export const Note = (props: TextProps & { readonly children: ReactNode }) => (
  <Text span size="xs" c="dimmed" {...props} />
);
