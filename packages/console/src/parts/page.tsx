import { HeraldError } from "@herald/client";
import { Button, CopyButton } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import { useGone } from "../api/live.tsx";
import { isUnreachable, sentencesOf } from "../api/problems.ts";
import { texts } from "../texts/common.ts";
import { Icon } from "./icon.tsx";

type PageProps = {
  readonly title: ReactNode;
  /** In the browser's tab. */
  readonly name: string;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
};

export const Page = ({ title, name, about, actions, children }: PageProps) => {
  useEffect(() => {
    document.title = `${name} · ${texts.product}`;
  }, [name]);
  return (
    <div className="page">
      <div className="page-head">
        <h1 className="grow">{title}</h1>
        {actions && <div className="toolbar">{actions}</div>}
        {about && <p className="about">{about}</p>}
      </div>
      {children}
    </div>
  );
};

type PanelProps = {
  readonly title?: ReactNode;
  readonly actions?: ReactNode;
  /** Instead of a title: what the rows are chosen by. */
  readonly filters?: ReactNode;
  /** Without space around it: for tables. */
  readonly flush?: boolean;
  readonly children: ReactNode;
};

export const Panel = ({ title, actions, filters, flush = false, children }: PanelProps) => (
  <section className="panel">
    {filters && <header className="filters">{filters}</header>}
    {title && (
      <header>
        <h2 className="grow">{title}</h2>
        {actions}
      </header>
    )}
    {flush ? children : <div className="inside">{children}</div>}
  </section>
);

/** What there is to do where there is nothing yet. */
export const Empty = ({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) => (
  <div className="empty">
    <strong>{title}</strong>
    {children && <p>{children}</p>}
    {action}
  </div>
);

/** The API's own sentences. What is read again by itself is silent where the shell says already that Herald does not answer. */
export const Problem = ({
  error,
  onRetry,
}: {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}) => {
  const gone = useGone();
  if (gone && onRetry && isUnreachable(error)) return null;
  return (
    <div className="problem" role="alert">
      <span className="bad">
        <Icon name="warning" />
      </span>
      <div className="grow">
        <strong>{texts.errors.title}</strong>
        {sentencesOf(error).map((sentence) => (
          <p key={sentence} className="break">
            {sentence}
          </p>
        ))}
        {error instanceof HeraldError && error.requestId && (
          <p className="muted mono break">
            {texts.errors.request} {error.requestId}
          </p>
        )}
      </div>
      {onRetry && (
        <Button variant="default" size="xs" style={{ flexShrink: 0 }} onClick={onRetry}>
          {texts.errors.retry}
        </Button>
      )}
    </div>
  );
};

/** A value that people paste elsewhere. */
export const Copyable = ({ value, children }: { readonly value: string; readonly children?: ReactNode }) => (
  <CopyButton value={value} timeout={1_500}>
    {({ copied, copy }) => (
      <button
        type="button"
        className="copyable mono"
        title={copied ? texts.common.copied : texts.common.copy}
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

export type Fact = readonly [name: string, value: ReactNode];

export const Facts = ({ facts }: { readonly facts: readonly (Fact | false | undefined)[] }) => (
  <dl className="kv">
    {facts.map(
      (fact) =>
        fact && (
          <div key={fact[0]} style={{ display: "contents" }}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1]}</dd>
          </div>
        ),
    )}
  </dl>
);
