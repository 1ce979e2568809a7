/** Small parts that several views use. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { count } from "../text";
import type { Label } from "../tone";

/** Icon and text of a state. */
export function Badge({ label }: { label: Label }) {
  return (
    <span class={`badge ${label.shade}`}>
      <Icon label={label} />
      {label.text}
    </span>
  );
}

/** Icon of a state. Its text must be beside it. */
export function Icon({ label }: { label: Label }) {
  return (
    <span class={`icon ${label.shade}`} aria-hidden="true">
      {label.icon}
    </span>
  );
}

/** Main heading of a view. It gets the focus when the view changes. */
export function Heading({ children, note }: { children: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="heading">
      <h1 tabIndex={-1}>{children}</h1>
      {note && <p class="muted">{note}</p>}
    </div>
  );
}

interface CardProps {
  title: string;
  note?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Card({ title, note, class: name = "", children }: CardProps) {
  return (
    <section class={`card ${name}`} aria-label={title}>
      <header class="card-head">
        <h2>{title}</h2>
        {note && <div class="muted">{note}</div>}
      </header>
      {children}
    </section>
  );
}

interface FigureProps {
  name: string;
  value: string;
  note?: string | undefined;
  /** True if the value is a fault. */
  isBad?: boolean;
}

/** Figure in a list of figures. */
export function Figure({ name, value, note, isBad = false }: FigureProps) {
  return (
    <div class={isBad ? "figure bad" : "figure"}>
      <dt>{name}</dt>
      <dd>
        <strong>
          {isBad && "✕ "}
          {value}
        </strong>
        {note && <span class="muted">{note}</span>}
      </dd>
    </div>
  );
}

/** Text in place of a list without entries. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** Part that scrolls sideways on a narrow screen. The keyboard can reach it. No other part may have its label. */
export function Sideways({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="sideways" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** Text to copy, such as a command. Browsers have no clipboard for pages of other machines without TLS. */
export function Copyable({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <span class="copyable">
      <code>{text}</code>
      {navigator.clipboard && (
        <button type="button" class="small" aria-label={`Copy ${text}`} onClick={() => void copy()}>
          {isCopied ? "Copied" : "Copy"}
        </button>
      )}
    </span>
  );
}

/** Link to the explanation of a fault code. */
export function CodeLink({ code }: { code: string }) {
  return <a href={`#/code/${encodeURIComponent(code)}`}>{code}</a>;
}

/** Names in one line: all of at most `max` names, otherwise their number, with all names on demand. */
export function Names({ names, thing, max = 4 }: { names: string[]; thing: string; max?: number }) {
  if (names.length === 0) {
    return <span class="muted">–</span>;
  }
  return names.length <= max ? (
    <span>{names.join(", ")}</span>
  ) : (
    <span title={names.join(", ")}>{count(names.length, thing)}</span>
  );
}

interface ToggleProps<T> {
  label: string;
  options: { value: T; text: string }[];
  value: T;
  onChoose: (value: T) => void;
}

/** Buttons of which one is pressed. */
export function Toggle<T extends string | number>({ label, options, value, onChoose }: ToggleProps<T>) {
  return (
    <div class="toggle" role="group" aria-label={label}>
      {options.map((option) => (
        <button type="button" aria-pressed={option.value === value} onClick={() => onChoose(option.value)}>
          {option.text}
        </button>
      ))}
    </div>
  );
}

interface SearchProps {
  label: string;
  value: string;
  onText: (text: string) => void;
}

export function Search({ label, value, onText }: SearchProps) {
  return (
    <label class="search">
      <span class="label">{label}</span>
      <input type="search" value={value} spellcheck={false} onInput={(event) => onText(event.currentTarget.value)} />
    </label>
  );
}

interface SelectProps {
  label: string;
  value: string;
  options: { value: string; text: string }[];
  onChoose: (value: string) => void;
}

export function Select({ label, value, options, onChoose }: SelectProps) {
  return (
    <label class="select">
      <span class="label">{label}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map((option) => (
          <option value={option.value}>{option.text}</option>
        ))}
      </select>
    </label>
  );
}
