import type { SignedInOperator } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { Center, Loader, Modal } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { useProject } from "./api/clients.ts";
import { isTransient, isUnreachable, unreachable } from "./api/problems.ts";
import { connection, currentSession, signIn, signOut } from "./api/session.ts";
import { FirstPage, SignInForm } from "./sign-in.tsx";

declare global {
  interface Window {
    /** Set by boot.js, which removes the code from the address. */
    heraldSignInCode?: string | undefined;
    /** The slug of the error with which a sign-in by the identity provider ended. */
    heraldSignInRefusal?: string | undefined;
  }
}

type Signed = { readonly session: SignedInOperator; readonly signOut: () => Promise<void> };

const SessionContext = createContext<Signed | undefined>(undefined);

export const useSession = (): Signed => {
  const signed = useContext(SessionContext);
  if (!signed) throw new Error("useSession: outside of SessionGate");
  return signed;
};

type Role = (typeof knownValues.projectRole)[number];

/** From the lowest: each role includes those before it. */
const roles: readonly string[] = knownValues.role;
const includes = (role: string, needed: Role): boolean => roles.indexOf(role) >= roles.indexOf(needed);

/** Whether the operator has a role, or a higher one, for the installation. */
export const useHasRole = (needed: Role): boolean => includes(useSession().session.role, needed);

/** Whether the operator has a role, or a higher one, in the project that the page shows. */
export const useHasRoleHere = (needed: Role): boolean => {
  const { session } = useSession();
  const { id } = useProject();
  const granted = session.projects.find((grant) => grant.id === id)?.role ?? "member";
  return includes(session.role, needed) || includes(granted, needed);
};

/** Whether the operator may send and change in the project, not only read. */
export const useMayWrite = (): boolean => useHasRoleHere("operator");

type State = {
  readonly session?: SignedInOperator | undefined;
  readonly ended?: boolean;
  readonly note?: string | undefined;
};

/** A code works once, so it is read and cleared at once. */
const signInCode = window.heraldSignInCode;
window.heraldSignInCode = undefined;

const usedLink = "This link no longer works: each link works once. Sign in with a token, or create a new link.";

const begin = async (): Promise<State> => ({
  session: signInCode === undefined ? await currentSession() : await signIn({ code: signInCode }),
  // Its sentences are loaded only when they are shown.
  note: window.heraldSignInRefusal && (await import("./sign-in-refusal.ts")).signInRefusal(window.heraldSignInRefusal),
});
let begun: Promise<State> | undefined;

/** Shows its children only with a session. When the session ends, the page stays in place under a sign-in form. */
export const SessionGate = ({ children }: { readonly children: ReactNode }) => {
  const queries = useQueryClient();
  const [state, setState] = useState<State | undefined>(undefined);

  useEffect(() => {
    const start = () => {
      begun ??= begin();
      begun.then(setState, (error: unknown) => {
        begun = undefined;
        if (isTransient(error)) setTimeout(start, 2_000);
        if (isUnreachable(error)) setState({ note: unreachable });
        else setState({ note: signInCode && usedLink });
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
          const logoutUrl = await signOut();
          queries.clear();
          if (logoutUrl) location.assign(logoutUrl);
          else setState({});
        },
      },
    [session, queries],
  );

  if (state === undefined)
    return (
      <Center h="100dvh">
        <Loader size="sm" aria-label="Loading" />
      </Center>
    );
  const onSession = (next: SignedInOperator) => {
    setState({ session: next });
    void queries.invalidateQueries();
  };
  if (!signed)
    return (
      <FirstPage title="Sign in to Herald">
        <SignInForm note={state.note} onSession={onSession} />
      </FirstPage>
    );
  return (
    <SessionContext.Provider value={signed}>
      {children}
      <Modal
        opened={state.ended === true}
        onClose={() => {}}
        withCloseButton={false}
        closeOnEscape={false}
        closeOnClickOutside={false}
        title="Sign in to Herald"
      >
        <SignInForm
          note="Your session has ended. Sign in again to continue. Nothing you typed is lost."
          onSession={onSession}
        />
      </Modal>
    </SessionContext.Provider>
  );
};
