import type { SignedInOperator } from "@herald/client";
import { Button, PasswordInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { signIn } from "./api/session.ts";
import { Form } from "./parts/field.tsx";
import { Problem } from "./parts/page.tsx";

type Props = { readonly note?: string | undefined; readonly onSession: (session: SignedInOperator) => void };

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
    <Form onSubmit={() => token.trim() !== "" && signing.mutate()} className="stack">
      {note && <p className="muted sign-in-note">{note}</p>}
      <PasswordInput
        label="Operator token"
        description="It stays on this page until you sign in, then a cookie replaces it. Nothing stores the token."
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
  <span className="brand">
    <img src="/console/icon.svg" alt="" width={26} height={26} />
    Herald
  </span>
);

/** A page without a project, and so without a menu. */
export const FirstPage = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => (
  <main className="sign-in">
    <div className="stack">
      <Brand />
      <section className="panel">
        <div className="inside stack">
          <h1 className="sign-in-title">{title}</h1>
          {children}
        </div>
      </section>
    </div>
  </main>
);
