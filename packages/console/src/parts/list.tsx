import type { Pagination } from "@herald/client";
import { Box, Drawer, Flex, Group, Skeleton, Stack, Table, UnstyledButton, VisuallyHidden } from "@mantine/core";
import type { QueryKey } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { firstRows, useRead } from "../api/read.ts";
import { useFilters } from "./filters.tsx";
import { count } from "./format.tsx";
import { Empty, type EmptyProps, Panel } from "./page.tsx";
import { Problem } from "./problem.tsx";
import { SmallButton } from "./small-button.tsx";

export type Column<Row> = {
  readonly title: ReactNode;
  readonly right?: boolean;
  /** Hidden on narrow screens. */
  readonly wide?: boolean;
  /** Sentences or words of others: on a phone rows are stacked, so that nothing of them is cut. */
  readonly long?: boolean;
  /** `open` shows the row's `detail`. */
  readonly cell: (row: Row, open: () => void) => ReactNode;
};

type RowLinkProps = {
  /** The address of the row's page. */
  readonly to?: string;
  /** Opens the row, if it has no page. */
  readonly onOpen?: () => void;
  readonly name: ReactNode;
  /** Below the name, in small letters. */
  readonly note?: ReactNode;
};

/** The cell that names a row, and leads to it. */
export const RowLink = ({ to, onOpen, name, note }: RowLinkProps) => (
  <UnstyledButton className="row-link" fz="inherit" onClick={onOpen} {...(to && ({ component: Link, to } as object))}>
    <b className="cut" dir="auto">
      {name}
    </b>
    {note !== undefined && (
      <span className="muted cut" dir="auto">
        {note}
      </span>
    )}
  </UnstyledButton>
);

/** An id that leads to its page. On a phone its end is cut. */
export const IdLink = ({ id, to }: { readonly id: string; readonly to: string }) => (
  <Box maw={{ base: 116, xs: "none" }} className="cut">
    <Link className="link mono" to={to}>
      {id}
    </Link>
  </Box>
);

type ListPage<Row> = {
  readonly data: readonly Row[];
  readonly pagination?: Pagination | undefined;
  /** A list without page numbers continues. */
  readonly more?: boolean;
};

type TableProps<Row> = {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** Default: the row's id. */
  readonly keyOf?: ((row: Row) => string) | undefined;
  readonly label: string;
  /** What acts on a row, in the last column. */
  readonly buttons?: ((row: Row) => ReactNode) | undefined;
  /** Shows the whole of a row. */
  readonly onOpen?: ((row: Row) => void) | undefined;
};

const styleOf = <Row,>({ right, wide }: Column<Row>) => ({
  ...(right && { ta: "right" as const }),
  ...(wide && { visibleFrom: "sm" as const }),
});

/** The title stands before the cell where rows are stacked. */
const cellOf = <Row,>(column: Column<Row>, index: number) => ({
  ...styleOf(column),
  ...(index > 0 && typeof column.title === "string" && { "data-title": column.title }),
});

const idOf = (row: unknown): string => (row as { readonly id: string }).id;

const buttonsColumn = <Row,>(buttons: (row: Row) => ReactNode): Column<Row> => ({
  title: "",
  right: true,
  cell: (row) => (
    <Group gap={8} justify="flex-end">
      {buttons(row)}
    </Group>
  ),
});

/** Rows as a table, which scrolls if it is wider than the screen. On a phone rows with buttons or long cells are stacked, each cell with its title. */
export function Rows<Row>({ rows, columns: given, keyOf = idOf, label, buttons, onOpen }: TableProps<Row>) {
  const columns = buttons ? [...given, buttonsColumn(buttons)] : given;
  const isStacked = buttons !== undefined || columns.some(({ long }) => long);
  return (
    <Box component="section" className="scroll" pos="relative" aria-label={label} tabIndex={0}>
      <Table className={isStacked ? "table stacked" : "table"}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns do not move
              <Table.Th key={index} c="dimmed" fz="xs" fw={560} className="nowrap" {...styleOf(column)}>
                {column.title === "" ? <VisuallyHidden>Actions</VisuallyHidden> : column.title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={keyOf(row)}>
              {columns.map((column, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: columns do not move
                <Table.Td key={index} {...cellOf(column, index)}>
                  {column.cell(row, () => onOpen?.(row))}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Box>
  );
}

/** The filters in the page's address, by name. */
type Search = Readonly<Record<string, string | undefined>>;
type Signal = { readonly signal: AbortSignal };

type Props<Row, More> = Omit<TableProps<Row>, "rows" | "onOpen"> & {
  readonly queryKey: QueryKey;
  /** Reads a page by its number, which is in the page's address. */
  readonly read?: (
    options: Signal & { readonly page: number; readonly limit: number },
    search: Search,
  ) => Promise<ListPage<Row> & More>;
  /** A list that has cursors but no page numbers. Its limit is `atATime`, and `More` adds as many. */
  readonly list?: (options: Signal & { readonly perPage: number }, search: Search) => AsyncIterable<Row>;
  readonly atATime?: number;
  /** As in {@link useRead}. */
  readonly everyMs?: number | false;
  /** The whole of a row, beside the list. */
  readonly detail?: { readonly title: (row: Row) => string; readonly show: (row: Row) => ReactNode };
  /** Stand in place of the title. */
  readonly filters?: ReactNode;
  readonly actions?: ReactNode | ((rows: readonly Row[]) => ReactNode);
  /** Stand above the rows. */
  readonly children?: ReactNode | ((page: ListPage<Row> & More) => ReactNode);
  /** Why a row was not changed. */
  readonly problem?: Error | null;
  readonly empty?: EmptyProps;
  /** Why no row is shown while a filter is set, in place of `empty`. */
  readonly unmatched?: string;
};

const waiting = ["a", "b", "c", "d", "e"];

/** A list as a panel with a table, with its states: loading, failed, empty. Earlier rows stay until those of another page or filter have arrived. */
export function List<Row, More = object>(props: Props<Row, More>) {
  const { queryKey, read, list, atATime = 50, everyMs, columns, keyOf, label, buttons, detail } = props;
  const { filters, actions, children, problem, empty, unmatched } = props;
  const { search, filtered, page, setPage } = useFilters();
  const [limit, setLimit] = useState(atATime);
  const [shown, setShown] = useState<Row>();
  const { data, error, refetch } = useRead<ListPage<Row> & More>(
    [...queryKey, search, limit],
    async ({ signal }) => {
      if (read) return read({ signal, page, limit }, search);
      const perPage = Math.min(atATime + 1, 100);
      return (await firstRows(list?.({ signal, perPage }, search) ?? [], limit)) as ListPage<Row> & More;
    },
    { keep: true, everyMs },
  );
  const rows = data?.data;
  const pagination = data?.pagination;
  return (
    <Panel
      flush
      title={!filters && label}
      actions={typeof actions === "function" ? actions(rows ?? []) : actions}
      filters={filters}
    >
      {typeof children === "function" ? data && children(data) : children}
      {(problem || error) && (
        <Stack px="md" py={14}>
          {problem && <Problem error={problem} />}
          {error && <Problem error={error} onRetry={() => void refetch()} />}
        </Stack>
      )}
      {!rows && !error && (
        <Stack px="md" py={14} aria-busy="true">
          {waiting.map((key) => (
            <Skeleton key={key} height={18} />
          ))}
        </Stack>
      )}
      {rows?.length === 0 && (filtered && unmatched ? <Empty title={unmatched} /> : empty && <Empty {...empty} />)}
      {rows && rows.length > 0 && <Rows {...{ rows, columns, keyOf, label, buttons }} onOpen={setShown} />}
      {/* Outside of the rows: the list may become empty while it is read. */}
      {detail && shown !== undefined && (
        <Drawer opened onClose={() => setShown(undefined)} title={detail.title(shown)} position="right" size="lg">
          <Stack>{detail.show(shown)}</Stack>
        </Drawer>
      )}
      {(data?.more || (pagination && pagination.pages > 1)) && (
        <Flex
          component="nav"
          aria-label={label}
          align="center"
          gap={8}
          px="md"
          py={8}
          fz="sm"
          style={{ borderTop: "1px solid var(--line)" }}
        >
          <span className="muted grow">
            {pagination && `${count(pagination.from)}–${count(pagination.to)} of ${count(pagination.count)}`}
          </span>
          {data?.more && <SmallButton onClick={() => setLimit(limit + atATime)}>More</SmallButton>}
          {pagination && (
            <>
              <SmallButton disabled={pagination.page <= 1} onClick={() => setPage(pagination.page - 1)}>
                Previous
              </SmallButton>
              <SmallButton disabled={pagination.page >= pagination.pages} onClick={() => setPage(pagination.page + 1)}>
                Next
              </SmallButton>
            </>
          )}
        </Flex>
      )}
    </Panel>
  );
}
