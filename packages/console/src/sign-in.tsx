import { Button, PasswordInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type Session, signIn } from "./api/session.ts";
import { Problem } from "./parts/page.tsx";
import { texts } from "./texts/common.ts";

type Props = { readonly note?: string | undefined; readonly onSession: (session: Session) => void };

export const SignInForm = ({ note, onSession }: Props) => {
  const [token, setToken] = useState("");
  const signing = useMutation({
    mutationFn: () => signIn({ token: token.trim() }),
    onSuccess: (session) => {
      setToken("");
      onSession(session);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() !== "") signing.mutate();
  };
  return (
    <form onSubmit={submit} className="stack">
      {note && <p className="muted sign-in-note">{note}</p>}
      <PasswordInput
        label={texts.signIn.token}
        description={texts.signIn.hint}
        value={token}
        onChange={(event) => setToken(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        data-autofocus
        autoFocus
        inputWrapperOrder={["label", "input", "description"]}
      />
      {signing.error && <Problem error={signing.error} />}
      <Button type="submit" loading={signing.isPending} disabled={token.trim() === ""} fullWidth>
        {texts.signIn.submit}
      </Button>
    </form>
  );
};

export const Brand = () => (
  <span className="brand">
    <img src="/console/icon.svg" alt="" width={26} height={26} />
    {texts.product}
  </span>
);

export const SignInPage = (props: Props) => (
  <main className="sign-in">
    <div className="stack">
      <Brand />
      <section className="panel">
        <div className="inside stack">
          <h1 className="sign-in-title">{texts.signIn.title}</h1>
          <SignInForm {...props} />
        </div>
      </section>
    </div>
  </main>
);
