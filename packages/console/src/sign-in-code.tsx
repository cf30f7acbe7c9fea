import { Button, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { admin } from "./api/clients.ts";
import { CodeBlock, Copyable } from "./parts/code.tsx";
import { Problem } from "./parts/problem.tsx";
import { useSession } from "./session-context.tsx";
import { FirstPage } from "./sign-in.tsx";

/** The page of `herald login --sso`: makes a code for the command line. */
export const SignInCodePage = () => {
  const { session } = useSession();
  const making = useMutation({ mutationFn: () => admin.sessions.createCode() });
  return (
    <FirstPage title="Sign in the command line">
      <Text>
        The code signs <code>herald</code> in as {session.name}, once and within 10 minutes.
      </Text>
      <Text c="dimmed">Make one only if you have run `herald login --sso` yourself just now. Paste it there.</Text>
      {making.error && <Problem error={making.error} />}
      {making.data ? (
        <CodeBlock>
          <Copyable value={making.data.code} />
        </CodeBlock>
      ) : (
        <Button onClick={() => making.mutate()} loading={making.isPending}>
          Show a code
        </Button>
      )}
    </FirstPage>
  );
};
