import { Button, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { admin } from "./api/clients.ts";
import { problemsOf } from "./api/problems.ts";
import { CodeBlock, Copyable } from "./parts/code.tsx";
import { Field, Form } from "./parts/field.tsx";
import { Problem } from "./parts/problem.tsx";
import { useHasRole, useSession } from "./session-context.tsx";
import { FirstPage } from "./sign-in.tsx";

const NewProjectForm = ({ onDone }: { readonly onDone?: () => void }) => {
  const [name, setName] = useState("");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const making = useMutation({
    mutationFn: () => admin.projects.create({ name: name.trim() }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["projects"] }),
  });
  if (making.data) {
    const { project, token } = making.data;
    const go = () => {
      onDone?.();
      void navigate({ to: "/p/$project", params: { project: project.id } });
    };
    return (
      <Stack>
        <Text c="dimmed">This is the first token of the project. Copy it now. Herald does not show it again.</Text>
        <CodeBlock>{token && <Copyable value={token} />}</CodeBlock>
        <Button onClick={go}>Continue</Button>
      </Stack>
    );
  }
  const named = problemsOf(making.error, "#/project/name");
  return (
    <Form onSubmit={making.mutate}>
      <Field label="Name" value={name} onChange={setName} error={named} data-autofocus />
      {making.error && !named && <Problem error={making.error} />}
      <Button type="submit" loading={making.isPending} disabled={name.trim() === ""}>
        Create project
      </Button>
    </Form>
  );
};

export const NewProject = ({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }) => (
  <Modal opened={opened} onClose={onClose} title="New project">
    {opened && <NewProjectForm onDone={onClose} />}
  </Modal>
);

/** The page that is shown until the operator may see a project. */
export const FirstProject = () => {
  const { session, signOut } = useSession();
  if (!useHasRole("admin"))
    return (
      <FirstPage title="No project yet">
        <Text>You are signed in as {session.name}, and no project is open to you.</Text>
        <Text c="dimmed">Ask an admin of Herald to grant you a role in your project, then load this page again.</Text>
        <Button variant="default" onClick={() => void signOut()}>
          Sign out
        </Button>
      </FirstPage>
    );
  return (
    <FirstPage title="Create your first project">
      <Text c="dimmed">A project holds the devices, notifications, providers and tokens of one app.</Text>
      <NewProjectForm />
    </FirstPage>
  );
};
