import { Button, type ButtonProps, type ElementProps } from "@mantine/core";

/** A button in a panel's header or in a row. */
export const SmallButton = (props: ButtonProps & ElementProps<"button", keyof ButtonProps>) => (
  <Button size="compact-sm" variant="default" {...props} />
);
