// Pages and parts that are loaded when they are first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../base/words.ts";
import { Empty } from "./states.tsx";

export function lazy<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  let ready: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [state, setState] = useState<{ Part: ComponentType<P> | null; failed: boolean }>({ Part: ready, failed: false });
    useEffect(() => {
      if (ready) return;
      load().then(
        (module) => {
          ready = module.default;
          setState({ Part: ready, failed: false });
        },
        () => setState({ Part: null, failed: true }),
      );
    }, []);
    if (state.failed) return <Empty title={t.partMissing}>{t.partMissingNext}</Empty>;
    const { Part } = state;
    return Part ? <Part {...props} /> : <div class="waiting" aria-busy="true" />;
  };
}
