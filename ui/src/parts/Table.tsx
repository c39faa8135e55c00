import { type ReactNode, useEffect, useRef, useState } from 'react';

/** A box that scrolls sideways. The keyboard reaches it only while there is something to scroll. */
export function Scroll({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const [isWide, setWide] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWide(element.scrollWidth > element.clientWidth));
    observer.observe(element);
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={box} className="scroll" tabIndex={isWide ? 0 : undefined}>
      {children}
    </div>
  );
}

interface Column<Row> {
  name: string;
  isNumber?: boolean;
  isWide?: boolean;
  show: (row: Row) => ReactNode;
}

export function Table<Row>({ rows, columns, rowKey }: { rows: readonly Row[]; columns: readonly Column<Row>[]; rowKey: (row: Row) => string }) {
  const style = ({ isNumber, isWide }: Column<Row>) => (isNumber ? 'number' : isWide ? 'wide' : undefined);
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={style(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.name} className={style(column)}>
                  {column.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
