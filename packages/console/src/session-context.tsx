import { Center, Loader, Modal } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { isPassing, isUnreachable } from "./api/problems.ts";
import { connection, currentSession, type Session, signIn, signOut } from "./api/session.ts";
import { SignInForm, SignInPage } from "./sign-in.tsx";
import { texts } from "./texts/common.ts";

declare global {
  interface Window {
    /** Put there by boot.js, which has taken it out of the address. */
    heraldSignInCode?: string | undefined;
  }
}

type Signed = { readonly session: Session; readonly signOut: () => Promise<void> };

const SessionContext = createContext<Signed | undefined>(undefined);

export const useSession = (): Signed => {
  const signed = useContext(SessionContext);
  if (!signed) throw new Error("useSession: outside of SessionGate");
  return signed;
};

type State = { readonly session?: Session | undefined; readonly ended?: boolean; readonly note?: string | undefined };

/** Works once, so it is read once. */
const signInCode = window.heraldSignInCode;
window.heraldSignInCode = undefined;

const begin = async (): Promise<State> => ({
  session: signInCode === undefined ? await currentSession() : await signIn({ code: signInCode }),
});
let begun: Promise<State> | undefined;

/** Shows what is below it to those who have a session. When one ends, the page stays as it is under a form to sign in again. */
export const SessionGate = ({ children }: { readonly children: ReactNode }) => {
  const queries = useQueryClient();
  const [state, setState] = useState<State | undefined>(undefined);

  useEffect(() => {
    const start = () => {
      begun ??= begin();
      begun.then(setState, (error: unknown) => {
        begun = undefined;
        if (isPassing(error)) setTimeout(start, 2_000);
        if (isUnreachable(error)) setState({ note: texts.errors.unreachable });
        else setState({ note: signInCode === undefined ? undefined : texts.signIn.codeFailed });
      });
    };
    start();
    const onEnd = () => setState((now) => (now?.session ? { ...now, ended: true } : now));
    connection.addEventListener("ended", onEnd);
    return () => connection.removeEventListener("ended", onEnd);
  }, []);

  const session = state?.session;
  const signed = useMemo(
    () =>
      session && {
        session,
        signOut: async () => {
          await signOut();
          queries.clear();
          setState({});
        },
      },
    [session, queries],
  );

  if (state === undefined)
    return (
      <Center h="100dvh">
        <Loader size="sm" aria-label={texts.common.loading} />
      </Center>
    );
  const onSession = (next: Session) => {
    setState({ session: next });
    void queries.invalidateQueries();
  };
  if (!signed) return <SignInPage note={state.note} onSession={onSession} />;
  return (
    <SessionContext.Provider value={signed}>
      {children}
      <Modal
        opened={state.ended === true}
        onClose={() => {}}
        withCloseButton={false}
        closeOnEscape={false}
        closeOnClickOutside={false}
        title={texts.signIn.title}
      >
        <SignInForm note={texts.signIn.again} onSession={onSession} />
      </Modal>
    </SessionContext.Provider>
  );
};
