import { Button, Modal, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { admin } from "./api/clients.ts";
import { problemsOf } from "./api/problems.ts";
import { Copyable, Problem } from "./parts/page.tsx";
import { Brand } from "./sign-in.tsx";
import { texts } from "./texts/common.ts";

const NewProjectForm = ({ onDone }: { readonly onDone?: () => void }) => {
  const [name, setName] = useState("");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const making = useMutation({
    mutationFn: () => admin.projects.create({ name: name.trim() }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["projects"] }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    making.mutate();
  };
  if (making.data) {
    const { project, token } = making.data;
    const go = () => {
      onDone?.();
      void navigate({ to: "/p/$project", params: { project: project.id } });
    };
    return (
      <div className="stack">
        <p className="muted sign-in-note">{texts.projects.token}</p>
        <pre className="code">{token && <Copyable value={token} />}</pre>
        <Button onClick={go}>{texts.projects.go}</Button>
      </div>
    );
  }
  const named = problemsOf(making.error, "#/project/name");
  return (
    <form onSubmit={submit} className="stack">
      <TextInput
        label={texts.projects.name}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={named}
        data-autofocus
      />
      {making.error && !named && <Problem error={making.error} />}
      <Button type="submit" loading={making.isPending} disabled={name.trim() === ""}>
        {texts.projects.create}
      </Button>
    </form>
  );
};

export const NewProject = ({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }) => (
  <Modal opened={opened} onClose={onClose} title={texts.projects.title}>
    {opened && <NewProjectForm onDone={onClose} />}
  </Modal>
);

/** Where there is no project yet. */
export const FirstProject = () => (
  <main className="sign-in">
    <div className="stack">
      <Brand />
      <section className="panel">
        <div className="inside stack">
          <h1 className="sign-in-title">{texts.projects.firstTitle}</h1>
          <p className="muted sign-in-note">{texts.projects.first}</p>
          <NewProjectForm />
        </div>
      </section>
    </div>
  </main>
);
