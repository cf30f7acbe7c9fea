import type { SignedInOperator } from "@herald/client";
import { Button, Divider, Flex, Group, Paper, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { hasIdentityProvider, signIn } from "./api/session.ts";
import { Form } from "./parts/field.tsx";
import { Problem } from "./parts/problem.tsx";

type Props = { readonly note?: string | undefined; readonly onSession: (session: SignedInOperator) => void };

/** Leads to the company's identity provider, and back to this page. */
const CompanySignIn = () => {
  const { data } = useQuery({
    queryKey: ["sign-in"],
    queryFn: hasIdentityProvider,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!data) return null;
  return (
    <>
      <Button
        component="a"
        href={`/admin/v1/sign-in/oidc?${new URLSearchParams({ return_to: location.pathname })}`}
        fullWidth
      >
        Sign in with your company
      </Button>
      <Divider label="or" />
    </>
  );
};

export const SignInForm = ({ note, onSession }: Props) => {
  const [token, setToken] = useState("");
  const signing = useMutation({
    mutationFn: () => signIn({ token: token.trim() }),
    onSuccess: (session) => {
      setToken("");
      onSession(session);
    },
  });
  return (
    <Form onSubmit={() => token.trim() !== "" && signing.mutate()}>
      {note && <Text c="dimmed">{note}</Text>}
      <CompanySignIn />
      <PasswordInput
        label="Operator token"
        description="The console exchanges the token for a session cookie and does not store it."
        value={token}
        onChange={(event) => setToken(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        data-autofocus
        autoFocus
      />
      {signing.error && <Problem error={signing.error} />}
      <Button type="submit" loading={signing.isPending} disabled={token.trim() === ""} fullWidth>
        Sign in
      </Button>
    </Form>
  );
};

export const Brand = () => (
  <Group gap={10} fw={660} fz="lg">
    <img src="/console/icon.svg" alt="" width={26} height={26} />
    Herald
  </Group>
);

/** A page without a project, and so without a menu. */
export const FirstPage = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => (
  <Flex component="main" mih="100dvh" align="center" justify="center" px="md" py="lg">
    <Stack w="min(400px, 100%)">
      <Brand />
      <Paper component="section" radius="md" px="md" py={14}>
        <Stack>
          <Text component="h1" fz="1.125rem" fw={700} mt={4}>
            {title}
          </Text>
          {children}
        </Stack>
      </Paper>
    </Stack>
  </Flex>
);
