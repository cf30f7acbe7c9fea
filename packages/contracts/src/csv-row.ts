/** The cells of a row of CSV (RFC 4180), or why it has none. Line breaks outside quotes are part of their cell. */
export const csvRow = (text: string, maxCells: number): readonly string[] | "broken" | "too-many" => {
  const cells: string[] = [];
  for (let start = 0; ; ) {
    if (cells.length === maxCells) return "too-many";
    let end: number;
    if (text[start] === '"') {
      let close = text.indexOf('"', start + 1);
      while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
      end = close + 1;
      if (close < 0 || (end < text.length && text[end] !== ",")) return "broken";
      cells.push(text.slice(start + 1, close).replaceAll('""', '"'));
    } else {
      const comma = text.indexOf(",", start);
      end = comma < 0 ? text.length : comma;
      const cell = text.slice(start, end);
      if (cell.includes('"')) return "broken";
      cells.push(cell);
    }
    if (end >= text.length) return cells;
    start = end + 1;
  }
};
