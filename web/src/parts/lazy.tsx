// Pages and parts that are loaded when they are first shown, or a little before.
import type { ComponentType } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { t } from "../base/words.ts";
import { Empty } from "./states.tsx";

export type Lazy<P> = ComponentType<P> & { load: () => Promise<void> };

export function lazy<P extends object>(find: () => Promise<{ default: ComponentType<P> }>): Lazy<P> {
  let ready: ComponentType<P> | null = null;
  let loading: Promise<void> | null = null;
  const load = () =>
    (loading ??= find().then(
      (module) => {
        ready = module.default;
      },
      (error) => {
        loading = null;
        throw error;
      },
    ));
  function Shown(props: P) {
    const [state, setState] = useState<{ Part: ComponentType<P> | null; failed: boolean }>({ Part: ready, failed: false });
    useLayoutEffect(() => {
      if (state.Part) return;
      load().then(
        () => setState({ Part: ready, failed: false }),
        () => setState({ Part: null, failed: true }),
      );
    }, []);
    if (state.failed) return <Empty title={t.partMissing}>{t.partMissingNext}</Empty>;
    const { Part } = state;
    return Part ? <Part {...props} /> : <div class="waiting" aria-busy="true" />;
  }
  return Object.assign(Shown, { load });
}
