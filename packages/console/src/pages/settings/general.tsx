import type { Project } from "@herald/client";
import { Button, Group, Switch, TagsInput, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { problemsOf } from "../../api/problems.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { exactTime } from "../../parts/format.tsx";
import { Copyable, Facts, Panel, Problem } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { settingsTexts } from "../../texts/settings.ts";

const t = settingsTexts.general;

const ProjectForm = ({ project }: { readonly project: Project }) => {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState(project.name);
  const [open, setOpen] = useState(project.open_registration);
  const [paths, setPaths] = useState(project.protected_metadata);
  const [staleAfter, setStaleAfter] = useState(project.stale_after ?? "");
  const [typed, setTyped] = useState("");
  const saving = useMutation({
    mutationFn: () =>
      admin.projects.update(project.id, {
        name,
        open_registration: open,
        protected_metadata: paths,
        stale_after: staleAfter.trim() === "" ? null : staleAfter.trim(),
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["projects"] }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    saving.mutate();
  };
  const remove = () => {
    queries.clear();
    void navigate({ to: "/" });
  };
  return (
    <div className="columns wide">
      <div className="stack">
        {project.warnings?.map((warning) => (
          <div key={warning} className="problem">
            <span className="warn">!</span>
            <p className="text">{warning}</p>
          </div>
        ))}
        <Panel title={t.title}>
          <form className="stack" onSubmit={submit}>
            <TextInput
              label={t.name}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={problemsOf(saving.error, "#/project/name")}
            />
            <Switch
              label={t.openRegistration}
              description={t.openRegistrationHint}
              checked={open}
              onChange={(event) => setOpen(event.currentTarget.checked)}
            />
            <TagsInput
              label={t.protectedMetadata}
              description={t.protectedMetadataHint}
              inputWrapperOrder={["label", "input", "error", "description"]}
              value={[...paths]}
              onChange={setPaths}
              acceptValueOnBlur
              error={problemsOf(saving.error, "#/project/protected_metadata")}
            />
            <TextInput
              label={t.staleAfter}
              description={t.staleAfterHint}
              inputWrapperOrder={["label", "input", "error", "description"]}
              placeholder={texts.common.never}
              value={staleAfter}
              onChange={(event) => setStaleAfter(event.currentTarget.value)}
              error={problemsOf(saving.error, "#/project/stale_after")}
              maw={240}
            />
            {saving.error && <Problem error={saving.error} />}
            <Group gap="sm">
              <Button type="submit" loading={saving.isPending}>
                {texts.common.save}
              </Button>
              {saving.isSuccess && (
                <span className="good text" role="status">
                  {settingsTexts.saved}
                </span>
              )}
            </Group>
          </form>
        </Panel>
      </div>
      <div className="stack">
        <Panel title={texts.nav.project}>
          <Facts
            facts={[
              [texts.common.id, <Copyable key="i" value={project.id} />],
              [texts.common.created, exactTime(project.created_at)],
            ]}
          />
        </Panel>
        <Panel title={t.deleteTitle}>
          <div className="stack">
            <p className="text muted">{t.deleteText}</p>
            <div>
              <Confirm
                label={t.deleteVerb}
                title={t.deleteTitle}
                verb={t.deleteVerb}
                size="sm"
                act={async () => {
                  if (typed !== project.name) throw new Error(t.deleteMismatch);
                  await admin.projects.delete(project.id);
                }}
                onDone={remove}
              >
                <TextInput
                  label={t.deleteType(project.name)}
                  value={typed}
                  onChange={(event) => setTyped(event.currentTarget.value)}
                />
              </Confirm>
            </div>
          </div>
        </Panel>
      </div>
    </div>
  );
};

export default function General() {
  const { id } = useProject();
  const { data, error, refetch } = useQuery({ queryKey: ["projects", id], queryFn: () => admin.projects.get(id) });
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  return data ? <ProjectForm key={data.id} project={data} /> : null;
}
