import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMayWrite } from "../session-context.tsx";
import { Icon } from "./icon.tsx";

/** A file of its own, because a page that imports another page loads all of it. */
export const ComposeButton = ({ project }: { readonly project: string }) =>
  useMayWrite() && (
    <Button component={Link} to={`/p/${project}/compose`} leftSection={<Icon name="compose" size={16} />}>
      Compose
    </Button>
  );
