import { Paper } from "@mantine/core";
import { useHasRole, useHasRoleHere, useSession } from "../session-context.tsx";

export type RoleNoteProps = {
  readonly needs: "operator" | "admin";
  /** What only that role can do here, such as "send". */
  readonly can: string;
  /** The page is about the installation, where a role in one project does not count. */
  readonly everywhere?: boolean;
};

/** Says at the top of a page what the operator's role cannot do there. Hidden for those who can. */
export const RoleNote = ({ needs, can, everywhere = false }: RoleNoteProps) => {
  const { role } = useSession().session;
  const here = useHasRoleHere(needs);
  const installation = useHasRole(needs);
  const reads = useHasRoleHere("operator") ? "operator" : "viewer";
  if (everywhere ? installation : here) return null;
  return (
    <Paper p="sm" mb="md" role="note">
      {`Your role here is ${everywhere ? role : reads}. Only the role ${needs} can ${can}: ask an admin of Herald for it.`}
    </Paper>
  );
};
