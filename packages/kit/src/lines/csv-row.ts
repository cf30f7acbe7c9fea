/** What separates cells under this header. Spreadsheets write `;` in countries whose decimals have a comma, and tabs on request. */
export const csvDelimiter = (header: string): string => {
  const names = header.replaceAll(/"[^"]*"/g, "");
  return names.includes(",") ? "," : (names.match(/[;\t]/)?.[0] ?? ",");
};

/** The cells of a row of CSV (RFC 4180), or why it has none. Line breaks outside quotes are part of their cell. */
export const csvRow = (text: string, maxCells: number, delimiter = ","): readonly string[] | "broken" | "too-many" => {
  const cells: string[] = [];
  for (let start = 0; ; ) {
    if (cells.length === maxCells) return "too-many";
    let end: number;
    if (text[start] === '"') {
      let close = text.indexOf('"', start + 1);
      while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
      end = close + 1;
      if (close < 0 || (end < text.length && text[end] !== delimiter)) return "broken";
      cells.push(text.slice(start + 1, close).replaceAll('""', '"'));
    } else {
      const next = text.indexOf(delimiter, start);
      end = next < 0 ? text.length : next;
      const cell = text.slice(start, end);
      if (cell.includes('"')) return "broken";
      cells.push(cell);
    }
    if (end >= text.length) return cells;
    start = end + 1;
  }
};
