import { Box, CopyButton, UnstyledButton } from "@mantine/core";
import type { ReactNode } from "react";
import { Icon } from "./icon.tsx";

/** A value with a button that copies it. */
export const Copyable = ({ value, children }: { readonly value: string; readonly children?: ReactNode }) => (
  <CopyButton value={value} timeout={1_500}>
    {({ copied, copy }) => (
      <UnstyledButton
        className="copyable mono"
        title={copied ? "Copied" : "Copy"}
        onClick={(event) => {
          event.stopPropagation();
          copy();
        }}
      >
        <span className="cut">{children ?? value}</span>
        <Icon name={copied ? "check" : "copy"} size={13} />
      </UnstyledButton>
    )}
  </CopyButton>
);

/** An id, an address or another value for machines. */
export const mono = (value: ReactNode) => value !== undefined && <span className="mono break">{value}</span>;

/** A text for machines in a frame. It scrolls, also by keyboard. */
export const CodeBlock = ({ children }: { readonly children: ReactNode }) => (
  <Box
    component="pre"
    className="code"
    tabIndex={0}
    m={0}
    px="sm"
    py={10}
    mah="22rem"
    bg="var(--page)"
    bd="1px solid var(--line)"
    bdrs="sm"
    ff="monospace"
    fz="xs"
    style={{ overflow: "auto" }}
  >
    {children}
  </Box>
);

export const JsonCode = ({ value }: { readonly value: unknown }) => (
  <CodeBlock>{JSON.stringify(value, null, 2)}</CodeBlock>
);
