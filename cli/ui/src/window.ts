/** Rows of a long list that are in view. Only these are in the document. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

export interface Range {
  /** Index of the first row. */
  first: number;
  /** Index after the last row. */
  end: number;
}

/** Rows before and after the view, so that fast scrolling shows no gap. */
const EXTRA = 8;

/** Returns the rows of a list that starts `above` pixels over the top of a view of `height` pixels. */
export function rangeOf(above: number, height: number, rowHeight: number, count: number): Range {
  const first = Math.floor(above / rowHeight) - EXTRA;
  const end = Math.ceil((above + height) / rowHeight) + EXTRA;
  const within = (index: number) => Math.min(count, Math.max(0, index));
  return { first: within(first), end: within(end) };
}

/** Returns the rows in view of a list in the page, and the reference for its element. */
export function useWindow(rowHeight: number, count: number): [RefObject<HTMLDivElement>, Range] {
  const list = useRef<HTMLDivElement>(null);
  const measure = () => rangeOf(-(list.current?.getBoundingClientRect().top ?? 0), innerHeight, rowHeight, count);
  const [range, setRange] = useState<Range>(() => rangeOf(0, innerHeight, rowHeight, count));
  useEffect(() => {
    const update = () => {
      const next = measure();
      setRange((range) => (range.first === next.first && range.end === next.end ? range : next));
    };
    update();
    addEventListener("scroll", update, { passive: true });
    addEventListener("resize", update);
    return () => {
      removeEventListener("scroll", update);
      removeEventListener("resize", update);
    };
  }, [rowHeight, count]);
  return [list, { first: Math.min(range.first, count), end: Math.min(range.end, count) }];
}

/** Returns true while a media query matches. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = () => setMatches(media.matches);
    update();
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [query]);
  return matches;
}
