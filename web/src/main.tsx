// Routes: which page stands at which address.
import { render } from "preact";
import { useLayoutEffect } from "preact/hooks";
import "./style/tokens.css";
import "./style/frame.css";
import "./style/parts.css";
import "./style/pages.css";
import { listen } from "./base/keys.ts";
import { followLinks, here, readAppPath } from "./base/url.ts";
import { language } from "./base/settings.ts";
import { speak, t } from "./base/words.ts";
import { Shell, usePage } from "./parts/shell.tsx";
import { lazy } from "./parts/lazy.tsx";
import { Empty } from "./parts/states.tsx";
import { Applications } from "./pages/applications.tsx";
import { stageOf, tabKey, TABS } from "./pages/tabs.ts";
import { appUrl, expectData, stageUrl, tasksUrl } from "./base/fetch.ts";
import { expectTasks } from "./parts/prepare.ts";
import { listenToServer } from "./base/live.ts";

const Application = lazy(() => import("./pages/application.tsx"));
const Compare = lazy(() => import("./pages/compare.tsx"));
const Read = lazy(() => import("./pages/read.tsx"));
const Shuffle = lazy(() => import("./pages/shuffle.tsx"));

function Page() {
  const { path } = here.value;
  if (path === "/" || path === "/applications" || path === "/applications/") return <Applications />;
  const app = readAppPath(path);
  if (app) return <Application key={`${app.app.id}/${app.app.attempt ?? ""}`} place={app} />;
  if (path === "/compare") return <Compare />;
  if (path === "/read") return <Read />;
  if (path === "/tools/shuffle-calculator") return <Shuffle />;
  return <Unknown />;
}

function Unknown() {
  usePage(t.noPage, [{ text: t.noPage }]);
  return (
    <Empty title={t.noPage}>
      <p>
        {t.noPageNext}{" "}
        <a class="link" href="/applications">
          {t.applications}
        </a>
      </p>
    </Empty>
  );
}

function App() {
  // After a change of page the keyboard starts at the content, as after a real page load. The
  // address that is drawn is told too: an address changes before its page does.
  const { path } = here.value;
  useLayoutEffect(() => {
    document.documentElement.dataset["drawn"] = path;
    if (document.activeElement === document.body || document.activeElement?.closest(".table"))
      document.getElementById("main")?.focus({ preventScroll: true });
  }, [path]);
  return (
    <Shell>
      <Page />
    </Shell>
  );
}

/** What the address needs is asked for at once, not each part by the one before. */
function fetchPage(): void {
  const place = readAppPath(here.value.path);
  if (!place) return;
  for (const part of [Application, TABS[tabKey(place)]]) part?.load().catch(() => undefined);
  expectData(`${appUrl(place.app)}/page`);
  if (tabKey(place) !== "stage") return;
  const at = stageOf(place);
  expectData(stageUrl(place.app, ...at));
  expectTasks("stage", tasksUrl(place.app, ...at));
}

async function start(): Promise<void> {
  fetchPage();
  await speak(language());
  followLinks();
  listen();
  listenToServer();
  render(<App />, document.getElementById("app")!);
}

void start();
