import type { Pagination } from "@herald/client";
import { Button, Skeleton, Table } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { texts } from "../texts/common.ts";
import { count } from "./format.tsx";
import { Problem } from "./page.tsx";

export type Column<Row> = {
  readonly title: ReactNode;
  readonly right?: boolean;
  /** Not where the screen is narrow. */
  readonly wide?: boolean;
  readonly cell: (row: Row) => ReactNode;
};

export type ListPage<Row> = { readonly data: readonly Row[]; readonly pagination?: Pagination | undefined };

type Props<Row> = {
  readonly query: UseQueryResult<ListPage<Row>>;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly empty: ReactNode;
  readonly label: string;
  readonly onPage?: (page: number) => void;
  readonly onRow?: (row: Row) => void;
};

const waiting = ["a", "b", "c", "d", "e"];

/** A page of a list as a table: while it loads, when it failed, when there is nothing, and otherwise. */
export function List<Row>({ query, columns, keyOf, empty, label, onPage, onRow }: Props<Row>) {
  const { data, error, refetch } = query;
  const rows = data?.data;
  const pagination = data?.pagination;
  const classOf = ({ right, wide }: Column<Row>) => `${right ? "right " : ""}${wide ? "wide-only" : ""}`;
  return (
    <>
      {error && (
        <div className="inside">
          <Problem error={error} onRetry={() => void refetch()} />
        </div>
      )}
      {!rows && !error && (
        <div className="inside stack" aria-busy="true">
          {waiting.map((key) => (
            <Skeleton key={key} height={18} />
          ))}
        </div>
      )}
      {rows?.length === 0 && empty}
      {rows && rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard where it is wider than the screen
        <section className="scroll" aria-label={label} tabIndex={0}>
          <Table className="table" highlightOnHover={onRow !== undefined}>
            <Table.Thead>
              <Table.Tr>
                {columns.map((column, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns do not move
                  <Table.Th key={index} className={classOf(column)}>
                    {column.title === "" ? <span className="hidden">{texts.common.actions}</span> : column.title}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row) => (
                <Table.Tr key={keyOf(row)} onClick={onRow && (() => onRow(row))} style={onRow && { cursor: "pointer" }}>
                  {columns.map((column, index) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: columns do not move
                    <Table.Td key={index} className={classOf(column)}>
                      {column.cell(row)}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
      )}
      {pagination && pagination.pages > 1 && onPage && (
        <nav className="pager" aria-label={label}>
          <span className="muted">
            {texts.common.rows(count(pagination.from), count(pagination.to), count(pagination.count))}
          </span>
          <span className="grow" />
          <Button
            size="compact-sm"
            variant="default"
            disabled={pagination.page <= 1}
            onClick={() => onPage(pagination.page - 1)}
          >
            {texts.common.previous}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            disabled={pagination.page >= pagination.pages}
            onClick={() => onPage(pagination.page + 1)}
          >
            {texts.common.next}
          </Button>
        </nav>
      )}
    </>
  );
}
