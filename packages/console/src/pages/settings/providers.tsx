import type { ProviderView } from "@herald/client";
import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Status, Time } from "../../parts/format.tsx";
import { Facts, Panel, Problem } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { settingsTexts } from "../../texts/settings.ts";
import { useProviders } from "../overview/attention.tsx";
import { ApnsForm, FcmForm, WebPushForm } from "./provider-forms.tsx";
import { TestPush } from "./test-push.tsx";
import { VapidKeys } from "./vapid-keys.tsx";

const t = settingsTexts.providers;
const names = ["apns", "fcm", "webpush"] as const;
type Name = (typeof names)[number];

const forms = { apns: ApnsForm, fcm: FcmForm, webpush: WebPushForm };

const show = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

const ProviderPanel = ({
  name,
  view,
  error,
}: {
  name: Name;
  view: ProviderView | null | undefined;
  error: unknown;
}) => {
  const { id } = useProject();
  const queries = useQueryClient();
  const [dialog, setDialog] = useState<"edit" | "test" | undefined>();
  const refresh = () => {
    setDialog(undefined);
    void queries.invalidateQueries({ queryKey: [id, "providers"] });
  };
  const Form = forms[name];
  return (
    <Panel
      title={
        <span className="title-line">
          {t.names[name]} {view && <Status value={view.status} />}
        </span>
      }
      actions={
        <span className="toolbar">
          {view && (
            <Button size="compact-sm" variant="light" onClick={() => setDialog("test")}>
              {t.test}
            </Button>
          )}
          {view !== undefined && (
            <Button size="compact-sm" variant="default" onClick={() => setDialog("edit")}>
              {view ? t.replace : t.add}
            </Button>
          )}
          {view && (
            <Confirm
              label={texts.common.delete}
              title={t.deleteTitle(t.names[name])}
              verb={t.deleteVerb}
              act={() => admin.providers.delete(id, name)}
              onDone={refresh}
            >
              {t.deleteText}
            </Confirm>
          )}
        </span>
      }
    >
      {error ? <Problem error={error} /> : null}
      {view === null && <p className="text muted">{t.empty[name]}</p>}
      {view && (
        <div className="stack">
          {view.status === "paused" && <p className="text warn">{view.paused_reason}</p>}
          {view.problems?.map((problem) => (
            <div key={problem.reason + problem.host} className="problem">
              <div>
                <strong>{problem.reason}</strong> {problem.host}
                <p>{problem.detail}</p>
                <p className="muted">
                  {t.since} <Time at={problem.since} />
                </p>
              </div>
            </div>
          ))}
          <Facts
            facts={[
              ...Object.entries(view.settings)
                .filter(([key]) => key !== "ca" && (name !== "webpush" || !key.includes("key")))
                .map(
                  ([key, value]) =>
                    [
                      key,
                      <span key={key} className="mono">
                        {show(value)}
                      </span>,
                    ] as const,
                ),
              [texts.common.updated, <Time key="u" at={view.updated_at} />],
            ]}
          />
          {name === "webpush" && <VapidKeys />}
        </div>
      )}
      {dialog === "edit" && (
        <Form settings={view?.settings ?? {}} onClose={() => setDialog(undefined)} onDone={refresh} />
      )}
      {dialog === "test" && <TestPush provider={name} onClose={() => setDialog(undefined)} />}
    </Panel>
  );
};

export default function Providers() {
  const views = useProviders();
  return (
    <div className="stack">
      {names.map((name, index) => (
        <ProviderPanel key={name} name={name} view={views[index]?.data} error={views[index]?.error} />
      ))}
    </div>
  );
}
