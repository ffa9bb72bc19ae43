//! Pages for people: the web app where it was built, else (and always below `/plain`) pages that
//! load nothing and run nothing.

use crate::{History, Page, web};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use std::sync::Arc;

type Shared = State<Arc<dyn History>>;

/// Style stands in the page; nothing else may come in, and no other page may frame it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

pub(crate) fn router() -> Router<Arc<dyn History>> {
    Router::new()
        .route("/", get(first))
        .route("/applications", get(first))
        .route("/applications/{id}", get(of_application))
        .route("/applications/{id}/{*rest}", get(below_application))
        .route("/compare", get(app_only))
        .route("/read", get(app_only))
        .route("/tools/{*rest}", get(app_only))
        .route("/assets/{*name}", get(web::asset))
        .route("/theme.js", get(web::theme))
        .route("/icon.svg", get(web::icon))
        .fallback(no_page)
        .route("/plain", get(applications))
        .route("/plain/applications/{id}", get(application))
        .route("/plain/applications/{id}/{attempt}", get(attempt))
}

/// The app, or what stands in for it.
async fn first(history: Shared) -> Response {
    match web::page() {
        Some(page) => page,
        None => applications(history).await,
    }
}

async fn of_application(history: Shared, id: Path<String>) -> Response {
    match web::page() {
        Some(page) => page,
        None => application(history, id).await,
    }
}

async fn below_application(history: Shared, Path((id, rest)): Path<(String, String)>) -> Response {
    match web::page() {
        Some(page) => page,
        None => {
            // The attempt comes first; `-` stands before the name of a tab.
            let attempt = rest.split('/').next().filter(|first| *first != "-").map(str::to_owned);
            match attempt {
                Some(attempt) => self::attempt(history, Path((id, attempt))).await,
                None => application(history, Path(id)).await,
            }
        }
    }
}

/// An address that nobody knows; the app says so in its own frame.
async fn no_page(headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match web::page().filter(|_| accepts.contains("text/html")) {
        Some(page) => (StatusCode::NOT_FOUND, page).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such page; / lists the applications").into_response(),
    }
}

async fn app_only() -> Response {
    let without = || {
        let text = "this build has no web pages: build web/ (cargo xtask web), then the binary; /plain works without";
        (StatusCode::NOT_FOUND, text).into_response()
    };
    web::page().unwrap_or_else(without)
}

async fn applications(State(history): Shared) -> Response {
    answered(history, |h| h.page(&Page::Applications)).await
}

async fn application(State(history): Shared, Path(id): Path<String>) -> Response {
    answered(history, move |h| h.page(&Page::Application { id: &id, attempt: None })).await
}

async fn attempt(State(history): Shared, Path((id, attempt)): Path<(String, String)>) -> Response {
    answered(history, move |h| h.page(&Page::Application { id: &id, attempt: Some(&attempt) })).await
}

/// Runs what may read a log on a thread that may wait.
async fn answered(
    history: Arc<dyn History>,
    answer: impl FnOnce(&dyn History) -> Result<Option<String>, String> + Send + 'static,
) -> Response {
    let text = |status, text: &str| (status, HEADERS, text.to_owned()).into_response();
    match crate::spans::spawn_blocking(move || answer(&*history)).await {
        Ok(Ok(Some(page))) => html(StatusCode::OK, page),
        Ok(Ok(None)) => text(StatusCode::NOT_FOUND, "there is no such application; / lists all"),
        Ok(Err(why)) => text(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "answering failed"),
    }
}

fn html(status: StatusCode, page: String) -> Response {
    (status, HEADERS, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

/// Where a person goes with a token.
#[derive(Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

pub(crate) async fn ask(Query(next): Query<Next>) -> Response {
    login(&next.next, false)
}

const LOGIN_STYLE: &str = ":root{color-scheme:light dark;--bg:#f6f7f8;--surface:#fff;--ink:#14181f;--ink-3:#667080;--line:#cfd5dc;--fail:#b3340f}\
@media(prefers-color-scheme:dark){:root{--bg:#0d1015;--surface:#14181f;--ink:#e7eaee;--ink-3:#8d97a6;--line:#38414e;--fail:#ff8e70}}\
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--bg);color:var(--ink);font:14px/20px Inter,system-ui,sans-serif}\
form{width:min(360px,calc(100vw - 32px));box-sizing:border-box;padding:24px;background:var(--surface);border:1px solid var(--line);border-radius:8px}\
h1{margin:0 0 4px;font-size:20px;line-height:28px}p{margin:0 0 16px;color:var(--ink-3)}label{display:block;font-weight:600;margin-bottom:6px}\
input{width:100%;box-sizing:border-box;height:34px;padding:0 10px;font:13px ui-monospace,monospace;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:5px}\
button{margin-top:16px;height:34px;padding:0 14px;font:600 14px Inter,system-ui,sans-serif;color:var(--surface);background:var(--ink);border:0;border-radius:5px}\
.wrong{color:var(--fail);margin:8px 0 0}";

/// The page that asks for a token.
pub(crate) fn login(next: &str, wrong: bool) -> Response {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let said =
        if wrong { "<p class=\"wrong\" role=\"alert\">This token is wrong, revoked or has expired.</p>" } else { "" };
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Sign in · lakescope</title><style>{LOGIN_STYLE}</style></head><body><form method=\"post\" action=\"/login\"><h1>lakescope</h1>\
         <p>Show a token to go on. <code>lakescope token create</code> makes one.</p>\
         <label for=\"token\">Token</label><input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\
         <input type=\"hidden\" name=\"next\" value=\"{}\">{said}<button type=\"submit\">Sign in</button></form></body></html>",
        escaped(next)
    );
    html(if wrong { StatusCode::UNAUTHORIZED } else { StatusCode::OK }, page)
}
