import { Alert, CopyButton, Group, Stack, Text, type TextProps } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useEffect } from "react";
import { useGone } from "../api/live.tsx";
import { isUnreachable, sentencesOf } from "../api/problems.ts";
import type { ProblemProps } from "./explained-problem.tsx";
import { Status } from "./format.tsx";
import { Icon } from "./icon.tsx";

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
  readonly children: ReactNode;
};

export const Page = ({ title, status, counts, name = String(title), about, actions, children }: PageProps) => {
  useEffect(() => {
    document.title = `${name} · Herald`;
  }, [name]);
  return (
    <div className="page">
      <div className="page-head">
        <h1 className="grow">
          <Title title={title} status={status} counts={counts} />
        </h1>
        {actions && <Group gap={8}>{actions}</Group>}
        {about && <p className="about">{about}</p>}
      </div>
      {children}
    </div>
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
  <section className="panel">
    {filters && <header className="filters">{filters}</header>}
    {title && (
      <header>
        <h2 className="grow">
          <Title title={title} status={status} />
        </h2>
        {actions}
      </header>
    )}
    {flush ? children : <div className="inside">{children}</div>}
  </section>
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

/** Without the sentences for people, which are loaded only when they are shown. */
const PlainProblem = ({ error }: ProblemProps) => (
  <Alert icon={<Icon name="warning" />} className="break">
    {isUnreachable(error) ? "Herald is unreachable. Check that the gateway is running." : sentencesOf(error).join(" ")}
  </Alert>
);

const ExplainedProblem = lazy(() => import("./explained-problem.tsx").catch(() => ({ default: PlainProblem })));

/** An error for people. Hidden for queries that retry while the shell already shows that Herald is unreachable. */
export const Problem = (props: ProblemProps) => {
  const gone = useGone();
  if (isUnreachable(props.error)) return gone && props.onRetry ? null : <PlainProblem {...props} />;
  return (
    <Suspense>
      <ExplainedProblem {...props} />
    </Suspense>
  );
};

/** A value with a button that copies it. */
export const Copyable = ({ value, children }: { readonly value: string; readonly children?: ReactNode }) => (
  <CopyButton value={value} timeout={1_500}>
    {({ copied, copy }) => (
      <button
        type="button"
        className="copyable mono"
        title={copied ? "Copied" : "Copy"}
        onClick={(event) => {
          event.stopPropagation();
          copy();
        }}
      >
        <span className="cut">{children ?? value}</span>
        <Icon name={copied ? "check" : "copy"} size={13} />
      </button>
    )}
  </CopyButton>
);

/** Names with their values. A value that is undefined or false is left out with its name. */
export const Facts = ({ facts }: { readonly facts: Readonly<Record<string, ReactNode>> }) => (
  <dl className="kv">
    {Object.entries(facts).map(
      ([name, value]) =>
        value !== undefined &&
        value !== false && (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
    )}
  </dl>
);

/** An id, an address or another value for machines. */
export const mono = (value: ReactNode) => value !== undefined && <span className="mono break">{value}</span>;

export const JsonCode = ({ value }: { readonly value: unknown }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard
  <pre className="code" tabIndex={0}>
    {JSON.stringify(value, null, 2)}
  </pre>
);

/** A remark in small, pale letters. */
export const Note = (props: TextProps & { readonly children: ReactNode }) => (
  <Text span size="xs" c="dimmed" {...props} />
);
