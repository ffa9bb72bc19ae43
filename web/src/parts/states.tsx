// What a page says while it has nothing, waits, or could not get what it asked for.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Failure, Loaded } from "../base/fetch.ts";
import { t } from "../base/words.ts";
import { Icon } from "./icons.tsx";
import { CopyButton, Prose, sentence } from "./text.tsx";

export function ErrorBox({ error, again, what }: { error: Failure; again?: () => void; what?: string }) {
  const details = `${error.url}\n${error.status || "-"} ${error.message}`;
  return (
    <div class="card state error" role="alert">
      <Icon name="fail" />
      <div>
        <p class="state-title">{what ?? t.couldNotLoad}</p>
        <p class="soft">
          <Prose text={sentence(error.message)} />
        </p>
        {error.next && (
          <p class="soft">
            <Prose text={sentence(error.next)} />
          </p>
        )}
        <div class="row">
          {error.status === 401 && (
            <a class="btn sm pri" rel="external" href={`/login?next=${encodeURIComponent(location.pathname + location.search)}`}>
              {t.signIn}
            </a>
          )}
          {again && (
            <button type="button" class="btn sm" onClick={again}>
              {t.tryAgain}
            </button>
          )}
          <CopyButton text={details} label={t.copyDetails} />
        </div>
      </div>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="card state">
      <Icon name="dash" />
      <div>
        <p class="state-title">{title}</p>
        {children && <div class="soft">{children}</div>}
      </div>
    </div>
  );
}

export function Note({ kind = "warn", children }: { kind?: "warn" | "info"; children: ComponentChildren }) {
  return (
    <p class={`note ${kind}`}>
      <Icon name={kind === "warn" ? "warn" : "dot"} />
      <span>{children}</span>
    </p>
  );
}

/** True once something has lasted longer than a glance, so that quick answers do not flicker. */
function useLate(active: boolean, ms = 200): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (!active) return;
    const timer = setTimeout(() => setLate(true), ms);
    return () => clearTimeout(timer);
  }, [active]);
  return late;
}

interface WithProps<T> {
  of: Loaded<T>;
  rows?: number;
  what?: string;
  children: (data: T) => ComponentChildren;
}

/** Shows loaded data; older data stays, dimmed, while new data comes, and stays under an error. */
export function With<T>({ of, rows = 6, what, children }: WithProps<T>) {
  const late = useLate(of.busy);
  if (of.data === null) {
    if (of.error) return <ErrorBox error={of.error} again={of.again} what={what} />;
    return late ? <Skeleton rows={rows} /> : <div class="waiting" aria-busy="true" />;
  }
  return (
    <>
      {of.error && <ErrorBox error={of.error} again={of.again} what={what} />}
      <div class={late ? "stack dimmed" : "stack"} aria-busy={of.busy}>
        {children(of.data)}
      </div>
    </>
  );
}

export function Skeleton({ rows }: { rows: number }) {
  return (
    <div class="card skeleton" aria-busy="true" aria-label={t.loading} role="status">
      {Array.from({ length: rows }, (_, i) => (
        <i key={i} class={`w${(i * 7) % 4}`} />
      ))}
    </div>
  );
}
