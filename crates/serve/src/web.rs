//! The web pages: files that were built from `web/`, embedded. A build without them serves pages
//! that run no script instead.

use axum::extract::Path;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// What `web/` was built to; in debug builds it is read from disk.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// Scripts, styles, fonts and data come from here and from nowhere else; nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 3] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
];

/// The page that all others are made of by script; `None` when it was not built.
pub(crate) fn page() -> Option<Response> {
    let page = Files::get("index.html")?;
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    Some((HEADERS, headers, page.data).into_response())
}

/// A file whose name changes with its content, so that a browser keeps it.
pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    file(&format!("assets/{name}"), "public, max-age=31536000, immutable")
}

/// Whether the theme is dark, before anything is drawn.
pub(crate) async fn theme() -> Response {
    file("theme.js", "no-cache")
}

pub(crate) async fn icon() -> Response {
    file("icon.svg", "max-age=86400")
}

fn file(path: &str, cache: &'static str) -> Response {
    match Files::get(path) {
        Some(file) => {
            let kind = kind(path);
            (HEADERS, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache)], file.data).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        _ => "application/octet-stream",
    }
}
