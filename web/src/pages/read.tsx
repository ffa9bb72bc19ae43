// Paste what you have: a plan, a stack trace, numbers of a stage.
import { useState } from "preact/hooks";
import type { AppPage, Plan } from "../base/api.ts";
import { ask, Failure, OWN } from "../base/fetch.ts";
import { t } from "../base/words.ts";
import { here, setQuery } from "../base/url.ts";
import { Seg } from "../parts/bits.tsx";
import { lazy } from "../parts/lazy.tsx";
import { usePage } from "../parts/shell.tsx";
import { ErrorBox } from "../parts/states.tsx";
import { Report } from "./diagnosis.tsx";

const PlanView = lazy(() => import("../parts/plan.tsx"));

type Kind = "auto" | "plan" | "stack" | "stage-metrics" | "streaming";
const KINDS: Kind[] = ["auto", "plan", "stack", "stage-metrics", "streaming"];

interface Answer {
  kind: string;
  page: AppPage | null;
  plans: Plan[] | null;
}

export default function Read() {
  usePage(t.read, [{ text: t.read }]);
  const asked = here.value.query.get("kind") as Kind | null;
  const kind = asked && KINDS.includes(asked) ? asked : "auto";
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    setError(null);
    setQuery({ node: null, plan: null, find: null });
    try {
      setAnswer(
        await ask<Answer>(`${OWN}/read?kind=${kind}`, { method: "POST", body: text, headers: { "content-type": "text/plain" } }),
      );
    } catch (failure) {
      setAnswer(null);
      setError(failure as Failure);
    }
    setBusy(false);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim()) void send();
  };
  return (
    <>
      <div class="head">
        <div class="grow">
          <h1>{t.read}</h1>
          <p class="soft">{t.readNote}</p>
        </div>
      </div>
      <section class="card read">
        <textarea
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={press}
          placeholder={t.readPlaceholder}
          aria-label={t.readLabel}
          spellcheck={false}
          rows={answer ? 8 : 16}
        />
        <div class="bar">
          <Seg<Kind>
            label={t.whatIsIt}
            value={kind}
            options={KINDS.map((k) => [k, t.readKinds[k]])}
            onChange={(value) => setQuery({ kind: value === "auto" ? null : value })}
          />
          <div class="r">
            <span class="dim">{t.dropNote}</span>
            <button type="button" class="btn pri" disabled={busy || !text.trim()} onClick={() => void send()}>
              {busy ? t.reading : t.readIt}
            </button>
          </div>
        </div>
      </section>
      {error && <ErrorBox error={error} what={t.notRead} />}
      <div aria-live="polite" class="stack">
        {answer && <Result answer={answer} />}
      </div>
    </>
  );
}

function Result({ answer }: { answer: Answer }) {
  return (
    <>
      {answer.page && <Report app={null} page={answer.page} />}
      {answer.plans && answer.plans.length > 0 && <PlanView plans={answer.plans} top={[]} changes={[]} app={null} />}
    </>
  );
}
