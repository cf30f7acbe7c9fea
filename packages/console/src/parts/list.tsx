import type { Pagination } from "@herald/client";
import { Skeleton, Stack, Table, VisuallyHidden } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useFilters } from "./filters.tsx";
import { count } from "./format.tsx";
import { Empty, type EmptyProps, Panel, Problem } from "./page.tsx";
import { SmallButton } from "./small-button.tsx";

export type Column<Row> = {
  readonly title: ReactNode;
  readonly right?: boolean;
  /** Hidden on narrow screens. */
  readonly wide?: boolean;
  /** Sentences or words of others: on a phone rows are stacked, so that nothing of them is cut. */
  readonly long?: boolean;
  readonly cell: (row: Row) => ReactNode;
};

/** The last column: buttons that act on a row. */
export const rowActions = <Row,>(cell: Column<Row>["cell"]): Column<Row> => ({ title: "", right: true, cell });

export type ListPage<Row> = { readonly data: readonly Row[]; readonly pagination?: Pagination | undefined };

type TableProps<Row> = {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly label: string;
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

/** Rows as a table, which scrolls if it is wider than the screen. On a phone rows with buttons or long cells are stacked, each cell with its title. */
export function Rows<Row>({ rows, columns, keyOf, label }: TableProps<Row>) {
  const isStacked = columns.some(({ title, long }) => title === "" || long);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard
    <section className="scroll" aria-label={label} tabIndex={0}>
      <Table className={isStacked ? "table stacked" : "table"}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns do not move
              <Table.Th key={index} {...styleOf(column)}>
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
                  {column.cell(row)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

type Props<Row> = Omit<TableProps<Row>, "rows"> & {
  readonly query: UseQueryResult<ListPage<Row>>;
  /** Stand in place of the title. */
  readonly filters?: ReactNode;
  readonly actions?: ReactNode;
  /** Stand above the rows. */
  readonly children?: ReactNode;
  readonly empty?: EmptyProps;
  /** Why no row is shown while a filter is set, in place of `empty`. */
  readonly unmatched?: string;
  /** Loads more rows of a list without a count. */
  readonly onMore?: (() => void) | undefined;
};

const waiting = ["a", "b", "c", "d", "e"];

/** A page of a list as a panel with a table, with its states: loading, failed, empty. Its page number is in the address. */
export function List<Row>(props: Props<Row>) {
  const { query, columns, keyOf, label, filters, actions, children, empty, unmatched, onMore } = props;
  const { filtered, setPage } = useFilters();
  const { data, error, refetch } = query;
  const rows = data?.data;
  const pagination = data?.pagination;
  return (
    <Panel flush title={!filters && label} actions={actions} filters={filters}>
      {children}
      {error && (
        <div className="inside">
          <Problem error={error} onRetry={() => void refetch()} />
        </div>
      )}
      {!rows && !error && (
        <Stack px="md" py={14} aria-busy="true">
          {waiting.map((key) => (
            <Skeleton key={key} height={18} />
          ))}
        </Stack>
      )}
      {rows?.length === 0 && (filtered && unmatched ? <Empty title={unmatched} /> : empty && <Empty {...empty} />)}
      {rows && rows.length > 0 && <Rows rows={rows} columns={columns} keyOf={keyOf} label={label} />}
      {pagination && pagination.pages > 1 && (
        <nav className="pager" aria-label={label}>
          <span className="muted">
            {count(pagination.from)}–{count(pagination.to)} of {count(pagination.count)}
          </span>
          <span className="grow" />
          <SmallButton disabled={pagination.page <= 1} onClick={() => setPage(pagination.page - 1)}>
            Previous
          </SmallButton>
          <SmallButton disabled={pagination.page >= pagination.pages} onClick={() => setPage(pagination.page + 1)}>
            Next
          </SmallButton>
        </nav>
      )}
      {onMore && (
        <nav className="pager" aria-label={label}>
          <span className="grow" />
          <SmallButton onClick={onMore}>More</SmallButton>
        </nav>
      )}
    </Panel>
  );
}
