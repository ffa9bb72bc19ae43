//! The description of this API: an OpenAPI 3.1 document, made from the list of operations and the
//! types that they answer with.

mod schemas;
pub(crate) mod shapes;
pub(super) mod words;
mod written;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use utoipa::PartialSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{
    Content, Header, Info, InfoBuilder, License, OpenApi, Ref, RefOr, Required, ResponseBuilder, Server,
};

const ABOUT: &str = "What the pages of lakescope are made of: diagnoses of Spark applications, and what Spark's REST API \
(which is under `/api/v1` of the same server) does not tell.\n\nTimes are epoch milliseconds (`started_ms`, \
`from_ms`), durations milliseconds, sizes bytes. What is not known is null, never 0; fields that are left out instead \
say so. Fields may be added to answers at any time. Answers are compressed for clients that accept gzip.";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| written::text(&document()));

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getOpenapi", tag = "server",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)),
)]
pub(super) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

fn document() -> OpenApi {
    let mut document = super::operations().into_openapi();
    document.info = info();
    document.servers = Some(vec![Server::new("/api/lakescope/v1")]);
    document.tags = Some(tags());
    let no_scopes: [&str; 0] = [];
    document.security = Some(vec![SecurityRequirement::new("token", no_scopes), SecurityRequirement::default()]);
    for (path, item) in &mut document.paths.paths {
        finish(path, item);
    }
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", token());
    components.responses = refusals();
    schemas::finish(&mut components.schemas);
    let text = document.to_json().unwrap_or_default();
    let components = document.components.get_or_insert_default();
    components.schemas.retain(|name, _| text.contains(&format!("#/components/schemas/{name}\"")));
    document
}

fn info() -> Info {
    let mut license = License::new("Apache-2.0");
    license.identifier = Some("Apache-2.0".to_owned());
    let info = InfoBuilder::new().title("lakescope").version(env!("CARGO_PKG_VERSION"));
    info.description(Some(ABOUT)).license(Some(license)).build()
}

fn tags() -> Vec<Tag> {
    let tag = |(name, about): (&str, &str)| TagBuilder::new().name(name).description(Some(about)).build();
    let all = [
        ("applications", "Which applications there are, and what is to be said of one"),
        ("queries", "SQL executions with their plans"),
        ("stages", "Stage attempts and their tasks"),
        ("jobs", "What the Jobs API does not tell of runs"),
        ("tools", "Comparison, the shuffle calculator, reading of pasted text"),
        ("server", "The server itself"),
    ];
    all.into_iter().map(tag).collect()
}

fn token() -> SecurityScheme {
    let about = "A token of `lakescope token create`, by `Authorization: Bearer lks_…`. A server that was started with \
                 `--no-auth` asks for none.";
    SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about)).build())
}

/// What holds for every operation: who is refused, and which application it is about.
fn finish(path: &str, item: &mut PathItem) {
    let of_attempt = path.starts_with("/applications/{id}/{attempt}/");
    if path.starts_with("/applications/{id}/") {
        let id = parameter("id", "Application id.");
        let attempt =
            of_attempt.then(|| parameter("attempt", "Attempt id, where the application has attempts (YARN)."));
        item.parameters = Some([Some(id), attempt].into_iter().flatten().map(RefOr::T).collect());
    }
    for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
        refuse(operation);
        let summary = operation.summary.take().unwrap_or_default();
        let (summary, about) = (summary.trim_end_matches('.'), if of_attempt { " (of an attempt)" } else { "" });
        operation.summary = Some(format!("{summary}{about}"));
        if of_attempt {
            operation.operation_id.iter_mut().for_each(|id| id.push_str("OfAttempt"));
        }
    }
}

fn parameter(name: &str, about: &str) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
    parameter.description(Some(about)).schema(Some(String::schema())).build()
}

/// Answers of the door, by status.
const REFUSALS: [(&str, &str); 4] =
    [("401", "NoToken"), ("403", "NotAllowed"), ("429", "TooManyWrongTokens"), ("500", "Broken")];

fn refuse(operation: &mut Operation) {
    for (status, name) in REFUSALS {
        let refusal = RefOr::Ref(Ref::from_response_name(name));
        operation.responses.responses.entry(status.to_owned()).or_insert(refusal);
    }
}

fn refusals() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let text = || Content::new(Some(String::schema()));
    let said = |about: &str| ResponseBuilder::new().description(about).content("text/plain", text());
    let after = Header::builder().description(Some("Seconds to wait")).schema(Some(u32::schema())).build();
    let broken = "Reading a log, or what is kept of it, failed; a text where tokens cannot be checked";
    let failure = Content::new(Some(Ref::from_schema_name("Failure")));
    let all = [
        ("NoToken", said("A token is needed, or it is wrong, revoked or has expired; says what to send")),
        ("NotAllowed", said("The role of the token is too low, or another site made a browser ask")),
        ("TooManyWrongTokens", said("Too many wrong tokens came from this address").header("Retry-After", after)),
        ("Broken", said(broken).content("application/json", failure)),
    ];
    all.map(|(name, response)| (name.to_owned(), RefOr::T(response.build()))).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A router tells its routes only in its debug form: `paths: {RouteId(1): "/applications", …}`.
    fn routes() -> BTreeSet<String> {
        let told = format!("{:?}", super::super::router());
        let paths = told.split("paths: {").nth(1).unwrap().split("} }").next().unwrap();
        let quoted = |part: &str| part.rsplit_once("): \"").map(|(_, path)| path.trim_end_matches('"').to_owned());
        paths.split(", ").filter_map(quoted).collect()
    }

    #[test]
    fn every_route_is_described() {
        let described: BTreeSet<String> = document().paths.paths.keys().cloned().collect();
        assert!(described.len() > 25, "{described:?}");
        assert_eq!(routes(), described);
    }

    #[test]
    fn the_reference_page_is_this_document() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&page, DOCUMENT.as_str()).unwrap();
        }
        let page = std::fs::read_to_string(page).unwrap_or_default();
        assert!(page == *DOCUMENT, "docs/reference/openapi.json is stale: run `UPDATE=1 cargo test -p serve`");
    }

    #[test]
    fn every_operation_says_what_it_is() {
        let mut ids = BTreeSet::new();
        for (path, item) in document().paths.paths {
            for operation in [item.get, item.post].into_iter().flatten() {
                assert!(ids.insert(operation.operation_id.unwrap()), "{path} has the id of another");
                assert!(operation.summary.is_some() && operation.tags.is_some_and(|tags| tags.len() == 1), "{path}");
                for parameter in operation.parameters.into_iter().flatten() {
                    let RefOr::T(parameter) = parameter else { continue };
                    assert!(parameter.description.is_some_and(|text| !text.is_empty()), "{path}: {}", parameter.name);
                }
            }
        }
    }
}
