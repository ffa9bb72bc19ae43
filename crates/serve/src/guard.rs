//! Who may ask what: tokens and roles, and what protects a server that asks for none.

mod failures;

use crate::clock::now_ms;
use axum::Form;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use failures::Failures;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use store::{Accounts, Entry, Principal, Role};

/// Cookie of a browser that has shown its token.
const COOKIE: &str = "lakescope_token";
/// Days that a browser keeps it.
const COOKIE_DAYS: u32 = 30;

/// Who is let in.
#[derive(Clone, Debug)]
pub enum Door {
    /// Everybody on this machine, as admin.
    Open,
    /// Who shows a token.
    Tokens(Arc<Accounts>),
}

/// The door with its memory of failed attempts.
#[derive(Debug)]
pub(crate) struct Guard {
    door: Door,
    failures: Failures,
}

/// Who asks, beside the request.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub who: String,
    pub role: Role,
    pub address: String,
}

impl Guard {
    pub fn new(door: Door) -> Self {
        Self { door, failures: Failures::default() }
    }

    /// Adds to the audit log.
    ///
    /// # Errors
    /// When it cannot be written: what is to be audited must not be done then.
    pub async fn audit(&self, asking: &Asking, what: &str, object: &str, outcome: &str) -> Result<(), String> {
        let Door::Tokens(accounts) = &self.door else { return Ok(()) };
        let entry = Entry {
            at_ms: now_ms(),
            who: asking.who.clone(),
            what: what.to_owned(),
            object: object.to_owned(),
            outcome: outcome.to_owned(),
            address: asking.address.clone(),
        };
        accounts.audit(&entry).await.map_err(|error| error.to_string())
    }

    async fn principal(&self, secret: &str, from: IpAddr) -> Result<Option<Principal>, Response> {
        let Door::Tokens(accounts) = &self.door else { return Ok(None) };
        if let Some(seconds) = self.failures.barred_for_s(from, now_ms()) {
            let text = format!("too many wrong tokens from {from}; try again in {seconds} s");
            let headers = [(header::RETRY_AFTER, seconds.to_string())];
            return Err((StatusCode::TOO_MANY_REQUESTS, headers, text).into_response());
        }
        match accounts.verify(secret, now_ms()).await {
            Ok(Some(principal)) => Ok(Some(principal)),
            Ok(None) => {
                self.failures.note(from, now_ms());
                Ok(None)
            }
            Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()),
        }
    }
}

/// Lets a request through, or answers it.
pub(crate) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    match let_in(&guard, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => in_the_words_of(&path, refusal).await,
    }
}

/// Clients of the Jobs API read errors in its form.
#[cfg(target_os = "linux")]
async fn in_the_words_of(path: &str, refusal: Response) -> Response {
    match crate::jobs_api::is_of(path) {
        true => crate::jobs_api::refusal(refusal).await,
        false => refusal,
    }
}

#[cfg(not(target_os = "linux"))]
async fn in_the_words_of(_: &str, refusal: Response) -> Response {
    refusal
}

async fn let_in(guard: &Guard, request: Request) -> Result<Request, Response> {
    let (mut request, body) = request.into_parts();
    let peer = request.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let from = peer.unwrap_or(IpAddr::from([0, 0, 0, 0]));
    if let Err(why) = is_own_page(&guard.door, &request.method, &request.headers) {
        return Err((StatusCode::FORBIDDEN, why).into_response());
    }
    let asking = match &guard.door {
        Door::Open => Asking { who: "anybody".to_owned(), role: Role::Admin, address: from.to_string() },
        Door::Tokens(_) if is_public(request.uri.path()) => {
            Asking { who: "nobody".to_owned(), role: Role::Viewer, address: from.to_string() }
        }
        Door::Tokens(_) => admitted(guard, &request, from).await?,
    };
    let needed = needed_role(&request.method, request.uri.path());
    if asking.role < needed {
        let text = format!(
            "{} needs the role {}; a token of {} has {}",
            request.uri.path(),
            needed.name(),
            asking.who,
            asking.role.name()
        );
        return Err((StatusCode::FORBIDDEN, text).into_response());
    }
    request.extensions.insert(asking);
    Ok(Request::from_parts(request, body))
}

/// What is answered without a token: whether the server runs, the page that asks for one, and the
/// files of pages, which say nothing of anybody.
fn is_public(path: &str) -> bool {
    matches!(path, "/health" | "/ready" | "/login" | "/logout" | "/theme.js" | "/icon.svg")
        || ["/assets/", "/.well-known/", "/oidc/"].iter().any(|folder| path.starts_with(folder))
}

/// Looking needs a viewer, adding an operator.
fn needed_role(method: &Method, path: &str) -> Role {
    let looks = [Method::GET, Method::HEAD].contains(method);
    match looks || is_public(path) || path == "/api/lakescope/v1/read" || path == "/mcp" {
        true => Role::Viewer,
        false => Role::Operator,
    }
}

async fn admitted(guard: &Guard, request: &Parts, from: IpAddr) -> Result<Asking, Response> {
    let Some(secret) = secret(&request.headers) else { return Err(refusal(request, "a token is needed")) };
    match guard.principal(&secret, from).await? {
        Some(principal) => Ok(Asking { who: principal.name, role: principal.role, address: from.to_string() }),
        None => Err(refusal(request, "the token is wrong, revoked or has expired")),
    }
}

/// The token of a request: `Authorization: Bearer`, or the cookie of a browser.
fn secret(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| value.split_once(' '));
    if let Some((_, token)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        return Some(token.trim().to_owned());
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value.to_owned()).next()
}

/// A person is led to the page that asks for a token; a program is told.
fn refusal(request: &Parts, why: &str) -> Response {
    let accepts = request.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = request.method == Method::GET && !request.uri.path().starts_with("/api/2.");
    if is_page && accepts.contains("text/html") {
        let wanted = request.uri.path_and_query().map_or("/", |path| path.as_str());
        let wanted: String = url::form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
        return (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/login?next={wanted}"))]).into_response();
    }
    let text = format!("{why}; send Authorization: Bearer TOKEN (`lakescope token create` makes one)");
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer realm=\"lakescope\"")], text).into_response()
}

/// Refuses what another site makes a browser send: a change from a foreign page, and, where no
/// token is asked for, a foreign name that was made to lead to this machine (DNS rebinding).
fn is_own_page(door: &Door, method: &Method, headers: &HeaderMap) -> Result<(), String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    if matches!(door, Door::Open) && !host.is_empty() && !is_this_machine(host) {
        return Err(format!("{host} is no name of this machine; ask 127.0.0.1, or use tokens instead of --no-auth"));
    }
    let changes = ![Method::GET, Method::HEAD].contains(method);
    match text(header::ORIGIN).filter(|_| changes) {
        Some(origin) if origin.split_once("://").map_or(origin, |(_, host)| host) != host => {
            Err(format!("a page of {origin} may change nothing here"))
        }
        _ => Ok(()),
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let loopback = name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    loopback || name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// What the page that asks for a token sends.
#[derive(Deserialize)]
pub(crate) struct Login {
    token: String,
    #[serde(default)]
    next: String,
}

/// Takes a token from a person; the browser keeps it where no script can read it.
pub(crate) async fn login(
    State(guard): State<Arc<Guard>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Form(login): Form<Login>,
) -> Response {
    let found = match guard.principal(login.token.trim(), peer.ip()).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let asking = |who: &str| Asking { who: who.to_owned(), role: Role::Viewer, address: peer.ip().to_string() };
    let Some(principal) = found else {
        // A refusal is told whether or not it can be noted.
        let _ = guard.audit(&asking("nobody"), "login", "", "refused").await;
        return crate::pages::login(&login.next, true);
    };
    if let Err(why) = guard.audit(&asking(&principal.name), "login", &principal.token_id, "done").await {
        return (StatusCode::INTERNAL_SERVER_ERROR, why).into_response();
    }
    let cookie = format!(
        "{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}",
        login.token.trim(),
        COOKIE_DAYS * 24 * 60 * 60
    );
    let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, local(&login.next).to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Takes the cookie back.
pub(crate) async fn logout() -> Response {
    let cookie = format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/login".to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// A path of this server; anything that might lead elsewhere leads to the first page.
fn local(next: &str) -> &str {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    let own = next.starts_with('/') && !next.starts_with("//") && next.chars().all(plain);
    if own { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered_without_a_token() {
        for (host, own) in [
            ("127.0.0.1:8484", true),
            ("localhost", true),
            ("app.localhost:80", true),
            ("[::1]:8484", true),
            ("evil.example:8484", false),
            ("127.0.0.1.evil.example", false),
            ("[2001:db8::1]:8484", false),
        ] {
            assert_eq!(is_this_machine(host), own, "{host}");
        }
    }

    #[test]
    fn a_login_leads_nowhere_else() {
        for (next, to) in [
            ("/applications/app-1?x=1", "/applications/app-1?x=1"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
            ("", "/"),
        ] {
            assert_eq!(local(next), to, "{next:?}");
        }
    }
}
